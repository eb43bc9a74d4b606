package authzconfig_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/remote/remotetest"
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

// TestReloadOfCaches: a changed file that only stops the caching of answers takes effect.
func TestReloadOfCaches(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"status":{"allowed":true}}`)
	}))
	t.Cleanup(srv.Close)
	path, hookConfig := filepath.Join(t.TempDir(), "config"), remotetest.Kubeconfig(t, srv, "/")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	first := head + "authorizers: [" + rbac + ", " + webhook("a", hookConfig) + "]"
	write(first)
	c := chain(t, first)
	reloads := make(chan bool, 100)
	c.Path, c.Every, c.Reloaded = path, 5*time.Millisecond, func(ok bool, _ time.Time) { reloads <- ok }
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() {
		stop()
		<-done
	}()
	<-reloads // the start
	write(head + "authorizers: [" + rbac + ", " + webhook("a", hookConfig, "cacheAuthorizedRequests: false") + "]")
	select {
	case ok := <-reloads:
		if !ok {
			t.Fatal("the file is refused")
		}
	case <-time.After(time.Minute):
		t.Fatal("the file is not used")
	}
	for range 2 {
		if d, _, err := c.Authorize(t.Context(), &authx.Attributes{User: &authx.Identity{Name: "bob"}, Verb: "get", Path: "/x"}); d != authx.Allow || err != nil {
			t.Fatal(d, err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Fatalf("the webhook got %d of 2 requests", n)
	}
}
