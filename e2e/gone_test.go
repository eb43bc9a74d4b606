package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestDatabaseGone moves the database away under a running server: no write is acknowledged, reads continue,
// readyz fails. Moved back, the server recovers; deleted, a start refuses to create a new one by itself.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	a := newAPI(t, s)
	file := filepath.Join(s.DataDir, "rowlock.db")
	move := func(from, to string) {
		t.Helper()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Rename(from+suffix, to+suffix); err != nil {
				t.Fatal(err)
			}
		}
	}
	want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"before"}}`)
	move(file, file+".away")
	for range 3 {
		code, header, body, err := a.send(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"lost"}}`)
		if err != nil || code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(string(body), "not where it was") {
			t.Errorf("a write: %d %v %s %v", code, header, body, err)
		}
	}
	want(t, a, 200, http.MethodGet, configMaps+"/before", "", "")
	if b := string(want(t, a, 500, http.MethodGet, "/readyz", "", "")); !strings.Contains(b, "[-]store-writes failed") {
		t.Errorf("readyz: %s", b)
	}
	want(t, a, 200, http.MethodGet, "/livez", "", "")
	logged(t, s, "the store takes no writes")
	if n := strings.Count(s.Log(), "the store takes no writes"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, s.Log())
	}
	move(file+".away", file)
	want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"after"}}`)
	want(t, a, 200, http.MethodGet, "/readyz", "", "")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	if started, err := s.Again(context.Background()); err == nil {
		started.Kill()
		t.Fatal("a server began anew by itself")
	} else if !strings.Contains(err.Error(), "--init") || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the refused start has made a database")
	}
	o := s.Options()
	o.Args = append(o.Args, "--init")
	s, err := harness.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	want(t, newAPI(t, s), 404, http.MethodGet, configMaps+"/before", "", "")
}
