package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestCacheFileOfALaterState has a database go back to an earlier state, and on from there with other writes under the
// revisions that the file is of: a copy of the SQLite file, a backup, and one by revision, with the later file next to
// them; and the file of another database.
func TestCacheFileOfALaterState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	store := "sqlite:" + path("rowlock.db")
	c := startCached(t, store, "", "--backup-dir="+path("folder"))
	c.before()
	waitForBackup(t, c.s)
	at := c.head()
	runBinary(t, "store", "backup", path("whole"), "--store", store)
	c.stop()
	c.again("after a stop", true)
	c.lost()
	waitForBackup(t, c.s)
	later := c.head()
	c.stop()
	c.copyFile(path("rowlock.db-cache"), path("later-cache"))

	// The state before anything was lost, in each form.
	states := map[string]func(to string){
		"a backup": func(to string) { runBinary(t, "store", "restore", path("whole"), "--store", "sqlite:"+to) },
		"a backup by revision": func(to string) {
			runBinary(t, "store", "restore", path("folder"), "--to", strconv.FormatInt(at, 10), "--store", "sqlite:"+to)
		},
		"a database of its own": nil,
	}
	for what, restore := range states {
		t.Run(what, func(t *testing.T) {
			db := filepath.Join(t.TempDir(), "rowlock.db")
			if restore != nil {
				restore(db)
			}
			first := harness.StartT(t, harness.Options{Store: "sqlite:" + db, DataDir: filepath.Join(filepath.Dir(db), "data"), Args: cached})
			c := &cachedServer{t, first, newAPI(t, first)}
			if restore == nil {
				c.before()
			}
			c.others(later)
			c.stop()
			c.copyFile(path("later-cache"), db+"-cache")
			c.again(what, false)
			c.wentBack()
			c.stop()
			c.again("after all was read", true)
			c.wentBack()
		})
	}
}

// TestCacheFileOfALaterCopy is the same with a copy of the SQLite file, which has the keys of the files that were written before
// it was made, and with such a file.
func TestCacheFileOfALaterCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	c := startCached(t, "sqlite:"+path("rowlock.db"), "")
	c.before()
	c.stop()
	c.copyFile(path("rowlock.db"), path("earlier"))
	c.copyFile(path("rowlock.db-cache"), path("earlier-cache"))
	c.again("after a stop", true)
	c.lost()
	at := c.head()
	c.stop()
	c.copyFile(path("rowlock.db-cache"), path("later-cache"))
	c.copyFile(path("earlier"), path("rowlock.db"))
	c.again("a later file beside an earlier database", false)
	c.others(at)
	c.s.Kill()
	for file, believed := range map[string]bool{"later-cache": false, "earlier-cache": true} {
		c.copyFile(path(file), path("rowlock.db-cache"))
		c.again(file, believed)
		c.wentBack()
		c.s.Kill()
	}
}

// cached are the flags of a server with a cache file, however few objects there are.
var cached = []string{"--cache-file=auto", "--cache-file-from=1"}

// before writes the objects that identify a state.
func (c *cachedServer) before() {
	c.t.Helper()
	for _, name := range []string{"same", "changed", "gone", "gone-and-back"} {
		c.write(name, "first")
	}
}

// lost makes changes to that state which a database that goes back will lack.
func (c *cachedServer) lost() {
	c.t.Helper()
	c.change("changed", "lost")
	for _, name := range []string{"gone", "gone-and-back"} {
		want(c.t, c.a, 200, http.MethodDelete, configMaps+"/"+name, "", "")
	}
	c.write("gone-and-back", "lost")
	for i := range 8 { // so many that another file is due
		c.write(fmt.Sprint("lost", i), "lost")
	}
}

// others writes to the database that went back, until it has given out all revisions up to one again.
func (c *cachedServer) others(to int64) {
	c.t.Helper()
	for i := 0; c.head() < to || i < 8; i++ {
		c.write(fmt.Sprint("other", i), "other")
	}
	c.change("gone", "other")
}

// wentBack checks that a server has the state of the database, and nothing of the lost one.
func (c *cachedServer) wentBack() {
	c.t.Helper()
	for name, value := range map[string]string{"same": "first", "changed": "first", "gone": "other", "gone-and-back": "first", "other0": "other"} {
		c.has(name, value)
	}
	want(c.t, c.a, 404, http.MethodGet, configMaps+"/lost0", "", "")
	if served, rows := c.served(), c.rows(); !slices.Equal(served, rows) {
		c.t.Fatalf("served:\n%s\nrows:\n%s\n%s", strings.Join(served, "\n"), strings.Join(rows, "\n"), c.s.Log())
	}
}

// head returns a revision that was the newest a moment ago.
func (c *cachedServer) head() int64 {
	c.t.Helper()
	head, err := strconv.ParseInt(c.list("?limit=1").Metadata.ResourceVersion, 10, 64)
	if err != nil {
		c.t.Fatal(err)
	}
	return head
}

func (c *cachedServer) list(query string) (list configMapList) {
	c.t.Helper()
	if err := json.Unmarshal(want(c.t, c.a, 200, http.MethodGet, configMaps+query, "", ""), &list); err != nil {
		c.t.Fatal(err)
	}
	return list
}

// served returns the config maps as the server has them: names, revisions and values.
func (c *cachedServer) served() (all []string) {
	c.t.Helper()
	for _, m := range c.list("?resourceVersion=0").Items {
		all = append(all, fmt.Sprint(m.Metadata.Name, " ", m.Metadata.ResourceVersion, " ", m.Data["v"]))
	}
	slices.Sort(all)
	return all
}

// rows returns the same as the database has them.
func (c *cachedServer) rows() []string {
	c.t.Helper()
	return liveConfigMaps(c.t, c.s.Options().Store)
}

// liveConfigMaps returns names, revisions and values in a database.
func liveConfigMaps(t testing.TB, store string) (all []string) {
	t.Helper()
	const live = `SELECT name, revision, value FROM kv WHERE resource = 'configmaps' AND namespace = 'default' AND superseded_revision IS NULL`
	rows, err := openSQL(t, store).QueryContext(t.Context(), live)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var m configMap
		var name, revision string
		var value []byte
		if err := rows.Scan(&name, &revision, &value); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(value, &m); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(name, " ", revision, " ", m.Data["v"]))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func (c *cachedServer) copyFile(from, to string) {
	c.t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", content, 0o600)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}
