package e2e

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// TestCacheFileOnPostgres is TestCacheFile on PostgreSQL: two servers with a copy each, what
// they write while the other one is away, and what somebody changes in the database or puts in its place.
func TestCacheFileOnPostgres(t *testing.T) {
	t.Parallel()
	store := newDatabase(t, sharedPostgres(t))
	c := startCached(t, store, "")
	for _, name := range []string{"same", "changed", "gone", "tampered"} {
		c.write(name, "first")
	}
	other := startCached(t, store, "")
	want(t, c.a, 201, http.MethodPost, "/api/v1/namespaces/default/secrets", "application/json", `{"metadata":{"name":"s"},"stringData":{"v":"hush"}}`)
	c.stop()
	other.stop()
	other.again("the other one, after a stop", true)
	other.change("changed", "second")
	want(t, other.a, 200, http.MethodDelete, configMaps+"/gone", "", "")
	other.write("new", "third")
	c.again("after a stop, and changes of another server", true)
	c.write("newer", "fourth")
	c.s.Kill()
	other.s.Kill()
	c.again("after a kill", true)
	for name, value := range map[string]string{"same": "first", "changed": "second", "new": "third", "newer": "fourth"} {
		c.has(name, value)
	}
	want(t, c.a, 404, http.MethodGet, configMaps+"/gone", "", "")
	want(t, c.a, 200, http.MethodGet, "/api/v1/namespaces/default/secrets/s", "", "")
	c.stop()
	tamper(t, store, `"first"`, `"by hand"`, `name = 'tampered'`)
	c.again("after a row was edited", false)
	c.has("tampered", "by hand")
	c.stop()
	other.again("the other one, after a row was edited", false)
	other.has("tampered", "by hand")
	other.stop()
	c.again("after all was read", true)
	c.stop()

	// A dump has the keys, and is read in by inserts, which no trigger hears of.
	restore := func(url string) {
		t.Helper()
		bin, err := pgtest.Binaries()
		if err != nil {
			t.Fatal(err)
		}
		dump, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), "--clean", "--if-exists", "--inserts", store).Output()
		if err != nil {
			t.Fatal(err)
		}
		from, to := hexOf(`"by hand"`), hexOf(`"from it"`)
		if !bytes.Contains(dump, from) || !bytes.Contains(dump, []byte("'copies'")) {
			t.Fatal("the dump lacks the row, or the keys")
		}
		read := exec.CommandContext(t.Context(), "psql", "-v", "ON_ERROR_STOP=1", url)
		read.Stdin = bytes.NewReader(bytes.ReplaceAll(dump, from, to))
		if out, err := read.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	copied := newDatabase(t, sharedPostgres(t))
	restore(copied)
	elsewhere := startCached(t, copied, c.s.DataDir)
	n, _ := valueOf(want(t, elsewhere.a, 200, http.MethodGet, "/metrics", "", ""), `rowlock_start_objects{from="cache_file"}`)
	if n != 0 {
		t.Fatalf("on an edited dump in another database the start read %v objects from the file", n)
	}
	elsewhere.has("tampered", "from it")
	elsewhere.s.Kill()
	restore(store)
	c.again("after an edited dump was read in again", false)
	c.has("tampered", "from it")
	c.stop()
	if _, err := os.Stat(filepath.Join(c.s.DataDir, "postgres-cache")); err != nil {
		t.Error(err)
	}
	off := harness.StartT(t, harness.Options{Store: store, Args: []string{"--cache-file=off", "--cache-file-from=1"}})
	if err := off.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(off.DataDir, "postgres-cache")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with --cache-file=off there is a file: %v", err)
	}
}

// hexOf is a text as a dump has it.
func hexOf(text string) []byte { return []byte(hex.EncodeToString([]byte(text))) }
