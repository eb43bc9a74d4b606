package e2e

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestCacheFile repeatedly starts a server with its cache file: it serves later writes, including those of a
// killed server, as the database has them; and rows that were edited by SQL once the cache was rebuilt.
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
	// A server that has cached rows does not read edits by hand, until a new epoch begins.
	tamper(t, store, `"first"`, `"by hand"`, `name = 'tampered'`)
	c.again("after a row was edited", true)
	c.has("tampered", "first")
	c.stop()
	path := strings.TrimPrefix(store, "sqlite:") + "-cache"
	rebuilt(t, store, path)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
	c.again("after --rebuild-cache", false)
	c.has("tampered", "by hand")
	c.stop()
	c.again("after all was read", true)
	c.stop()
	tamper(t, store, `"by hand"`, `"again"`, `name = 'tampered'`)
	c.without()
	c.again("after a start without a cache file", false)
	c.has("tampered", "again")
	c.stop()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)-30] ^= 1 // in the directory; a value is read from its row
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	c.again("after a bit of the file fell over", false)
	c.has("tampered", "again")
	c.has("same", "first")
	logged(t, c.s, "the cache file cannot be used")
}

// TestCacheFileOfARelease: a server does not read the cache file of another release, which reads the same rows as other objects.
func TestCacheFileOfARelease(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/namespaces/default/podtemplates"
	c := startCached(t, "sqlite:"+t.TempDir()+"/rowlock.db", "")
	want(t, c.a, 201, http.MethodPost, path, "application/json", `{"metadata":{"name":"p"},"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}`)
	c.stop()
	c.again("as the same release", true)
	c.stop()
	o := c.s.Options()
	args := o.Args
	for _, next := range []struct {
		release   string
		fromCache bool
		nulls     int
	}{{"1.36", false, 0}, {"1.36", true, 0}, {"1.32", false, 1}} {
		o.Args = append(slices.Clone(args), "--emulated-version="+next.release)
		s := harness.StartT(t, o)
		n, _ := valueOf(want(t, newAPI(t, s), 200, http.MethodGet, "/metrics", "", ""), `rowlock_start_objects{from="cache_file"}`)
		text := string(want(t, newAPI(t, s), 200, http.MethodGet, path+"/p", "", ""))
		if n > 0 != next.fromCache || strings.Count(text, `"creationTimestamp":null`) != next.nulls {
			t.Errorf("as %s: the start read %v objects from the file, and %s", next.release, n, text)
		}
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// cachedServer is a server that starts again and again on a database, with a cache file.
type cachedServer struct {
	t *testing.T
	s *harness.Server
	a *api
}

func startCached(t *testing.T, store, folder string, args ...string) *cachedServer {
	s := harness.StartT(t, harness.Options{Store: store, DataDir: folder, Args: append(slices.Clone(cached), args...)})
	return &cachedServer{t, s, newAPI(t, s)}
}

// again starts the server, which reads objects from the cache file, or none.
func (c *cachedServer) again(what string, fromFile bool) {
	c.t.Helper()
	next, err := c.s.Again(c.t.Context())
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", what, err, c.s.Log())
	}
	c.s, c.a = next, newAPI(c.t, next)
	c.t.Cleanup(next.Kill)
	n, ok := valueOf(want(c.t, c.a, 200, http.MethodGet, "/metrics", "", ""), `rowlock_start_objects{from="cache_file"}`)
	if !ok || n > 0 != fromFile {
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

// rebuilt runs --rebuild-cache, which reports that it removed a file, unless that is "".
func rebuilt(t *testing.T, store, file string) {
	t.Helper()
	out := string(runBinary(t, "store", "verify", "--rebuild-cache", "--store", store))
	if !strings.Contains(out, "a new epoch has begun") || strings.Contains(out, "removed "+file+"\n") != (file != "") || !strings.Contains(out, ": 0 problems") {
		t.Errorf("--rebuild-cache says %q", out)
	}
}

// without starts and stops the server with --cache-file=off.
func (c *cachedServer) without() {
	c.t.Helper()
	o := c.s.Options()
	o.Args = []string{"--cache-file=off"}
	off := harness.StartT(c.t, o)
	if n, _ := valueOf(want(c.t, newAPI(c.t, off), 200, http.MethodGet, "/metrics", "", ""), `rowlock_start_objects{from="cache_file"}`); n != 0 {
		c.t.Errorf("with --cache-file=off the start read %v objects from the file", n)
	}
	if err := off.Stop(); err != nil {
		c.t.Fatal(err)
	}
}

// TestDamageUnderCacheFile: bits of a database file flipped while no server ran. A server that starts from the cache file
// reports the damaged rows and serves the sound objects of the file.
func TestDamageUnderCacheFile(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/rowlock.db"
	c := startCached(t, "sqlite:"+file, "")
	for _, name := range []string{"sound", "value", "rowname", "indexed"} {
		c.write(name, "payload-of-"+name)
	}
	c.stop()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flip := func(what string, pattern string) {
		t.Helper()
		found := regexp.MustCompile(pattern).FindSubmatchIndex(content)
		if found == nil {
			t.Fatalf("the file lacks %s", what)
		}
		content[found[2]] ^= 4
	}
	flip("a value", `payload-(o)f-value`)
	flip("the name in a row", `configmapsdefaultr(o)wname[^{]{1,4}\{"kind"`)
	flip("a name in the index", `configmapsdefaulti(n)dexed[^{]{5}`)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	c.again("after bits of the database fell over", true)
	mustCome(t, "the readiness check names what is damaged", func() bool {
		code, _, body, err := c.a.send(t.Context(), http.MethodGet, "/readyz/corrupt-objects", "", "")
		if err != nil {
			t.Fatal(err)
		}
		named := code == http.StatusInternalServerError && strings.Contains(string(body), "5 objects cannot be read")
		for _, one := range []string{"value at revision ", "rkwname at revision ", "rowname at revision ", "indexed at revision ", "ijdexed at revision "} {
			named = named && strings.Contains(string(body), "configmaps/default/"+one)
		}
		return named
	})
	for _, one := range []string{"key=configmaps/default/value ", "key=configmaps/default/rkwname ", "key=configmaps/default/indexed "} {
		logged(t, c.s, one)
	}
	metrics := want(t, c.a, 200, http.MethodGet, "/metrics", "", "")
	if n, _ := valueOf(metrics, `rowlock_corrupt_objects{resource="configmaps"}`); n != 5 {
		t.Errorf("the metric counts %v objects", n)
	}
	want(t, c.a, 200, http.MethodGet, "/readyz", "", "")
	for _, name := range []string{"sound", "value", "rowname", "indexed"} { // the cache file has them as they were written
		c.has(name, "payload-of-"+name)
	}
	c.change("sound", "second")
	c.has("sound", "second")
}
