package access

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/datadir"
)

// TestInit: servers begin with the same keys and certificates of their own; keys that are
// there are never replaced.
func TestInit(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	if err := (&initOptions{dataDir: one, server: "https://one:6443", names: []string{"api.example", "10.1.2.3"}}).run(io.Discard); err != nil {
		t.Fatal(err)
	}
	read := func(dir, name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if !strings.Contains(read(one, "admin.kubeconfig"), "server: https://one:6443\n") {
		t.Error("the kubeconfig does not name the server")
	}
	again := &initOptions{dataDir: two, from: one}
	for range 2 { // the second time everything is there
		if err := again.run(io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ca.crt", "ca.key", "service-account.key", "front-proxy-ca.crt", "front-proxy-ca.key"} {
		if read(one, name) != read(two, name) {
			t.Errorf("%s is not taken over", name)
		}
	}
	if read(one, "serving.key") == read(two, "serving.key") {
		t.Error("two servers have one key")
	}
	other := t.TempDir()
	if err := (&initOptions{dataDir: other}).run(io.Discard); err != nil {
		t.Fatal(err)
	}
	before := read(two, "ca.key")
	err := (&initOptions{dataDir: two, from: other}).run(io.Discard)
	if err == nil || !strings.Contains(err.Error(), "ca.crt is there already, and differs: the folder has the keys of another cluster; choose an empty one, or move it away") || read(two, "ca.key") != before {
		t.Errorf("keys of another cluster: %v", err)
	}
	if err := os.Remove(filepath.Join(other, "service-account.key")); err != nil {
		t.Fatal(err)
	}
	if err := (&initOptions{dataDir: t.TempDir(), from: other}).run(io.Discard); err == nil || !strings.Contains(err.Error(), "--from: ") {
		t.Errorf("a folder without a key: %v", err)
	}
}

// TestInitRenews: an authority that is due gets a successor, and only then.
func TestInitRenews(t *testing.T) {
	for years, want := range map[int]string{1: "is not due", 7: "give ca.crt, ca.key and ca-cross.crt to all servers"} {
		dir := t.TempDir()
		if _, err := datadir.Open(dir, datadir.Options{ServerURL: "https://x", Now: time.Now().AddDate(-years, 0, 0)}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := (&initOptions{dataDir: dir, authority: true}).run(&out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("after %d years: %q %v", years, out.String(), err)
		}
	}
}
