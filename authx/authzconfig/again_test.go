package authzconfig_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
)

// TestRefusedIsTriedAgain: a file that was refused because another one was missing is
// taken over once that is there, though it did not change itself.
func TestRefusedIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	path, hookConfig := filepath.Join(dir, "config"), filepath.Join(dir, "hook")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil { // else one that is slow to write is seen empty
			t.Fatal(err)
		}
	}
	first := head + "authorizers: [" + rbac + "]"
	write(path, first)
	c := chain(t, first)
	reloads := make(chan bool, 100)
	c.Path, c.Every, c.Again, c.Log = path, 5*time.Millisecond, 50*time.Millisecond, slog.New(slog.DiscardHandler)
	c.Reloaded = func(ok bool, _ time.Time) { reloads <- ok }
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-reloads // the start
	write(path, head+"authorizers: ["+rbac+", "+webhook("a", hookConfig)+", {type: AlwaysAllow, name: alwaysallow}]")
	for range 3 {
		if <-reloads {
			t.Fatal("a file whose webhook has no kubeconfig is taken over")
		}
	}
	if c.AllowsAll() {
		t.Fatal("part of a refused file is in use")
	}
	text, err := os.ReadFile(say(t, 200, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	write(hookConfig, string(text))
	for !<-reloads {
	}
	d, _, err := c.Authorize(t.Context(), &authx.Attributes{User: &authx.Identity{Name: "bob"}, Verb: "get", Path: "/x"})
	if err != nil || d != authx.Allow || !c.AllowsAll() {
		t.Fatal(d, err, c.AllowsAll())
	}
	write(path, first)
	if !<-reloads || c.AllowsAll() {
		t.Fatal("AlwaysAllow stays")
	}
	stop()
	<-done
}
