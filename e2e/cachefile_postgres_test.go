package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

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
	bin, err := pgtest.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	restore := func(url string) {
		t.Helper()
		if _, err := os.Stat(filepath.Join(bin, "pg_dump")); errors.Is(err, fs.ErrNotExist) { // as in packages of npm
			cloned(t, store, url, `"by hand"`, `"from it"`)
			return
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

// cloned puts a copy of a database in the place of another, or of itself, changes a text in its rows, of which no
// trigger hears, and writes the rows of kv_meta anew: what reading in an edited dump does.
func cloned(t *testing.T, from, to, old, text string) {
	t.Helper()
	target, err := pgx.ParseConfig(to)
	if err != nil {
		t.Fatal(err)
	}
	source, err := pgx.ParseConfig(from)
	if err != nil {
		t.Fatal(err)
	}
	run := func(database string, statements ...string) {
		t.Helper()
		cfg := target.Copy()
		cfg.Database = database
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, s := range statements {
			if _, err := conn.Exec(t.Context(), s); err != nil {
				t.Fatalf("%s: %v", s, err)
			}
		}
	}
	name := func(db string) string { return pgx.Identifier{db}.Sanitize() }
	if between := target.Database + "_between"; source.Database == target.Database {
		run("postgres", "CREATE DATABASE "+name(between)+" TEMPLATE "+name(source.Database))
		source.Database = between
	}
	run("postgres", "DROP DATABASE "+name(target.Database)+" WITH (FORCE)", "CREATE DATABASE "+name(target.Database)+" TEMPLATE "+name(source.Database))
	run(target.Database, "SET session_replication_role = replica", "UPDATE kv_meta SET key = key",
		fmt.Sprintf(`UPDATE kv SET value = decode(replace(encode(value, 'hex'), '%s', '%s'), 'hex') WHERE position('\x%[1]s'::bytea IN value) > 0`, hexOf(old), hexOf(text)))
}

// hexOf is a text as a dump has it.
func hexOf(text string) []byte { return []byte(hex.EncodeToString([]byte(text))) }
