package e2e

import (
	"database/sql"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestCacheFile starts a server again and again on a file with a copy of its objects: what was written after
// the copy, by a server that was killed too, and what was changed in the database itself, is served as the
// database has it.
func TestCacheFile(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + t.TempDir() + "/rowlock.db"
	c := startCached(t, store, "")
	for _, name := range []string{"same", "changed", "gone", "tampered"} {
		c.write(name, "first")
	}
	want(t, c.a, 201, http.MethodPost, "/api/v1/namespaces/default/secrets", "application/json", `{"metadata":{"name":"s"},"stringData":{"v":"hush"}}`)
	c.stop()
	c.again("after a stop", true)
	c.change("changed", "second")
	want(t, c.a, 200, http.MethodDelete, configMaps+"/gone", "", "")
	c.write("new", "third")
	c.s.Kill()
	c.again("after a kill", true)
	c.has("same", "first")
	c.has("changed", "second")
	c.has("new", "third")
	want(t, c.a, 404, http.MethodGet, configMaps+"/gone", "", "")
	want(t, c.a, 200, http.MethodGet, "/api/v1/namespaces/default/secrets/s", "", "")
	c.stop()
	tamper(t, store, `"first"`, `"by hand"`, `name = 'tampered'`)
	c.again("after a row was edited", false)
	c.has("tampered", "by hand")
	c.stop()
	c.again("after all was read", true)
	c.stop()
	c.again("after a stop", true)
	c.stop()
	// No trigger hears of this one: the start believes the file, and holds it to the rows soon after.
	replace(t, store, `"by hand"`, `"replaced"`, "tampered")
	c.again("after a row was replaced", true)
	logged(t, c.s, "were not as their rows") // which is told when all is done about it
	if n, _ := valueOf(want(t, c.a, 200, http.MethodGet, "/metrics", "", ""), "rowlock_cache_file_wrong_objects"); n != 1 {
		t.Errorf("%v objects were found not to be as their rows\n%s", n, c.s.Log())
	}
	c.has("tampered", "replaced")
	path := strings.TrimPrefix(store, "sqlite:") + "-cache"
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	c.stop()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	c.again("after a bit of the file fell over", false)
	c.has("tampered", "replaced")
	c.has("same", "first")
	logged(t, c.s, "the cache file cannot be used")
}

// cachedServer is a server that starts again and again on a database, with a copy of its objects.
type cachedServer struct {
	t *testing.T
	s *harness.Server
	a *api
}

func startCached(t *testing.T, store, folder string, args ...string) *cachedServer {
	s := harness.StartT(t, harness.Options{Store: store, DataDir: folder, Args: append(slices.Clone(cached), args...)})
	return &cachedServer{t, s, newAPI(t, s)}
}

// again starts the server, which reads objects from the copy, or none.
func (c *cachedServer) again(what string, fromCopy bool) {
	c.t.Helper()
	next, err := c.s.Again(c.t.Context())
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", what, err, c.s.Log())
	}
	c.s, c.a = next, newAPI(c.t, next)
	c.t.Cleanup(next.Kill)
	n, ok := valueOf(want(c.t, c.a, 200, http.MethodGet, "/metrics", "", ""), `rowlock_start_objects{from="cache_file"}`)
	if !ok || n > 0 != fromCopy {
		c.t.Fatalf("%s: the start read %v objects (there: %v) from the file\n%s", what, n, ok, c.s.Log())
	}
}

func (c *cachedServer) has(name, value string) {
	c.t.Helper()
	if got := string(want(c.t, c.a, 200, http.MethodGet, configMaps+"/"+name, "", "")); !strings.Contains(got, `"v":"`+value+`"`) {
		c.t.Fatalf("%s is %s, want %s", name, got, value)
	}
}

func (c *cachedServer) write(name, value string) {
	c.t.Helper()
	want(c.t, c.a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"`+name+`"},"data":{"v":"`+value+`"}}`)
}

func (c *cachedServer) change(name, value string) {
	c.t.Helper()
	want(c.t, c.a, 200, http.MethodPatch, configMaps+"/"+name, "application/merge-patch+json", `{"data":{"v":"`+value+`"}}`)
}

func (c *cachedServer) stop() {
	c.t.Helper()
	if err := c.s.Stop(); err != nil {
		c.t.Fatal(err)
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
