package e2e

import (
	"database/sql"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestCacheFile starts a server again and again on a file with a copy of its objects: what was written after
// the copy, by a server that was killed too, and what was changed in the database itself, is served as the
// database has it.
func TestCacheFile(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + t.TempDir() + "/rowlock.db"
	options := harness.Options{Store: store, Args: []string{"--cache-file=auto", "--cache-file-from=1"}}
	s := harness.StartT(t, options)
	a := newAPI(t, s)
	again := func(what string, copied bool) {
		t.Helper()
		var err error
		if s, err = s.Again(t.Context()); err != nil {
			t.Fatalf("%s: %v\n%s", what, err, s.Log())
		}
		t.Cleanup(s.Kill)
		a = newAPI(t, s)
		n, ok := valueOf(want(t, a, 200, http.MethodGet, "/metrics", "", ""), `rowlock_start_objects{from="cache_file"}`)
		if !ok || n > 0 != copied {
			t.Fatalf("%s: the start read %v objects (there: %v) from the file\n%s", what, n, ok, s.Log())
		}
	}
	has := func(name, value string) {
		t.Helper()
		if got := string(want(t, a, 200, http.MethodGet, configMaps+"/"+name, "", "")); !strings.Contains(got, `"v":"`+value+`"`) {
			t.Fatalf("%s is %s, want %s", name, got, value)
		}
	}
	write := func(name, value string) {
		t.Helper()
		want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"`+name+`"},"data":{"v":"`+value+`"}}`)
	}
	change := func(name, value string) {
		t.Helper()
		want(t, a, 200, http.MethodPatch, configMaps+"/"+name, "application/merge-patch+json", `{"data":{"v":"`+value+`"}}`)
	}
	stop := func() {
		t.Helper()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"same", "changed", "gone", "tampered"} {
		write(name, "first")
	}
	want(t, a, 201, http.MethodPost, "/api/v1/namespaces/default/secrets", "application/json", `{"metadata":{"name":"s"},"stringData":{"v":"hush"}}`)
	stop()
	again("after a stop", true)
	change("changed", "second")
	want(t, a, 200, http.MethodDelete, configMaps+"/gone", "", "")
	write("new", "third")
	s.Kill()
	again("after a kill", true)
	has("same", "first")
	has("changed", "second")
	has("new", "third")
	want(t, a, 404, http.MethodGet, configMaps+"/gone", "", "")
	want(t, a, 200, http.MethodGet, "/api/v1/namespaces/default/secrets/s", "", "")
	stop()
	tamper(t, store, `"first"`, `"by hand"`, `name = 'tampered'`)
	again("after a row was edited", false)
	has("tampered", "by hand")
	stop()
	again("after all was read", true)
	stop()
	again("after a stop", true)
	stop()
	// No trigger hears of this one: the start believes the file, and holds it to the rows soon after.
	replace(t, store, `"by hand"`, `"replaced"`, "tampered")
	again("after a row was replaced", true)
	deadline := time.Now().Add(patience)
	for {
		n, _ := valueOf(want(t, a, 200, http.MethodGet, "/metrics", "", ""), "rowlock_cache_file_wrong_objects")
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%v objects were found not to be as their rows\n%s", n, s.Log())
		}
		time.Sleep(100 * time.Millisecond)
	}
	has("tampered", "replaced")
	path := strings.TrimPrefix(store, "sqlite:") + "-cache"
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	if !strings.Contains(s.Log(), "were not as their rows") {
		t.Errorf("the log does not tell of it:\n%s", s.Log())
	}
	stop()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	again("after a bit of the file fell over", false)
	has("tampered", "replaced")
	has("same", "first")
	if !strings.Contains(s.Log(), "the cache file cannot be used") {
		t.Errorf("the log does not say why:\n%s", s.Log())
	}
}

// replace puts another row in the place of a live one, under its own revision.
func replace(t *testing.T, store, from, to, name string) {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(store, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const rest = `revision, resource, namespace, name, created_revision, superseded_revision, deleted, expires_at, written_at`
	result, err := db.Exec(`INSERT OR REPLACE INTO kv (`+rest+`, value) SELECT `+rest+`, CAST(replace(value, ?, ?) AS BLOB) FROM kv WHERE name = ? AND superseded_revision IS NULL`, from, to, name)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := result.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows were replaced: %v", n, err)
	}
}
