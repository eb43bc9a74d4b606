package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// TestCacheFileOnPostgres is TestCacheFile on PostgreSQL: two servers with a cache file each, what
// they write while the other one is away, rows edited by hand, and a copy of the database.
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
	rebuilt(t, store, "")
	c.again("after --rebuild-cache", false)
	c.has("tampered", "by hand")
	c.stop()
	other.again("the other one, after --rebuild-cache", false)
	other.has("tampered", "by hand")
	other.stop()
	c.again("after all was read", true)
	c.stop()

	// A copy of the database has the keys of the files that were written before it, and the rows in them.
	dumped := newDatabase(t, sharedPostgres(t))
	copyDatabase(t, store, dumped)
	elsewhere := startCached(t, dumped, c.s.DataDir)
	n, _ := valueOf(want(t, elsewhere.a, 200, http.MethodGet, "/metrics", "", ""), `rowlock_start_objects{from="cache_file"}`)
	if n == 0 {
		t.Fatalf("on a copy of the database the start read nothing from the file\n%s", elsewhere.s.Log())
	}
	elsewhere.has("tampered", "by hand")
	elsewhere.s.Kill()
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

// copyDatabase fills an empty database with a dump of another one, or, where there is no pg_dump as in packages of npm,
// with that one as it lies on the disk.
func copyDatabase(t *testing.T, from, to string) {
	t.Helper()
	bin, err := pgtest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "pg_dump")); errors.Is(err, fs.ErrNotExist) {
		admin := openSQL(t, sharedPostgres(t).URL("postgres"))
		execSQL(t, admin, fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", databaseOf(to)))
		execSQL(t, admin, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", databaseOf(to), databaseOf(from)))
		return
	}
	dump, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), from).Output()
	if err != nil {
		t.Fatal(err)
	}
	read := exec.CommandContext(t.Context(), needs.Program(t, "psql"), "-v", "ON_ERROR_STOP=1", to)
	read.Stdin = bytes.NewReader(dump)
	if out, err := read.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
