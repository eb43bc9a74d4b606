package cache_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/blockfile"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/sqlstore"
)

// attesting is a log as a store that attests to cache files.
type attesting struct {
	*log
	known sqlstore.CacheFiles
	read  int // rows that were read in full
}

func newAttesting() *attesting { return &attesting{log: newLog(), known: sqlstore.NewEpoch()} }

func (v *attesting) Head(context.Context) (int64, error) { return v.revision, nil }

func (v *attesting) rows(keep func(revision int64) bool) (rows []sqlstore.Row) {
	for key, s := range v.live {
		if keep(s.revision) {
			rows = append(rows, sqlstore.Row{Key: key, Revision: s.revision, Created: 1, Value: []byte(s.value)})
		}
	}
	return rows
}

func (v *attesting) ReadAll(_ context.Context, _ int64, take func([]sqlstore.Row) error) error {
	return take(v.rows(func(int64) bool { return true }))
}

func (v *attesting) CheckRows(context.Context, bool, func([]sqlstore.Row) error) error { return nil }

func (v *attesting) CacheFiles(context.Context) (sqlstore.CacheFiles, error) { return v.known, nil }

func (v *attesting) NewEpoch(context.Context) error {
	v.known = sqlstore.NewEpoch()
	return nil
}

func (v *attesting) Attest(_ context.Context, epoch, name string, key [32]byte) error {
	if epoch != v.known.Epoch {
		return sqlstore.ErrEpochChanged
	}
	v.known.Add(name, key)
	return nil
}

func (v *attesting) ListRevisions(_ context.Context, _ int64, _ []sqlstore.Key, take func([]int64) error) error {
	for _, s := range v.live {
		for range 2 { // some may come twice
			if err := take([]int64{s.revision}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *attesting) ReadRows(_ context.Context, revisions []int64, take func([]sqlstore.Row) error) error {
	v.read += len(revisions)
	if len(revisions) == 0 {
		return nil
	}
	return take(v.rows(func(r int64) bool { return slices.Contains(revisions, r) }))
}

func (v *attesting) config(path string) *file.Config {
	epoch := v.known.Epoch
	return &file.Config{Path: path, Maker: "this", Leave: func(resource string) bool { return resource == "secrets" },
		Attest: func(ctx context.Context, name string, key [32]byte) error { return v.Attest(ctx, epoch, name, key) }}
}

// copied returns a cache of packed pods and others, with a cache file of it.
func copied(t testing.TB, n int) (v *attesting, path string) {
	t.Helper()
	v, path = newAttesting(), filepath.Join(t.TempDir(), "file")
	c := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
	for i := range n {
		name := fmt.Sprintf("p%d", i)
		c.Apply([]sqlstore.Change{v.write(fmt.Sprintf("ns%d", i%7), name, largePod(name, i))})
	}
	c.Apply([]sqlstore.Change{v.change(sqlstore.Key{Resource: "secrets", Namespace: "a", Name: "s"}, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s","namespace":"a","uid":"1"},"data":{"very":"hush"}}`, false)})
	c.Apply([]sqlstore.Change{v.change(sqlstore.Key{Resource: "widgets.x", Namespace: "a", Name: "w"}, `{"kind":"Widget","apiVersion":"x/v1","metadata":{"name":"w","namespace":"a","uid":"2"}}`, false)})
	c.Apply([]sqlstore.Change{v.change(sqlstore.Key{Resource: "~ranges", Name: "r"}, `10.0.0.1`, false)})
	c.Apply([]sqlstore.Change{v.change(sqlstore.Key{Resource: "widgets.x", Namespace: "a", Name: "bad"}, `{"kind":`, false)})
	pack(t, c)
	for _, it := range all(c)[:n/10] { // an item that is read twice is plain again
		_, _ = it.JSON(), it.JSON()
	}
	if objects, _, _ := c.Packed(); objects == 0 || objects == n {
		t.Fatalf("%d of %d objects are packed: some are to be and some not", objects, n)
	}
	if done, err := c.WriteFile(t.Context(), v.config(path), v); err != nil || done.Objects != n+1 {
		t.Fatalf("%d objects are in the file: %v", done.Objects, err)
	}
	return v, path
}

// loaded is a cache that was loaded from its cache file.
func loadedFrom(t testing.TB, v *attesting, path string) (*cache.Cache, cache.Loaded) {
	t.Helper()
	p, err := file.Open(v.config(path), &v.known)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
	done, err := c.LoadFile(t.Context(), v, v, p)
	if err != nil {
		t.Fatal(err)
	}
	return c, done
}

// everything returns all that readers can see of a cache.
func everything(t testing.TB, c *cache.Cache) (out []string) {
	t.Helper()
	for _, key := range c.Storages() {
		c.Snapshot(key).Ascend("", "", "", func(it *cache.Item) bool {
			out = append(out, key+" "+seen(it)+fmt.Sprint(it.Err()))
			return true
		})
	}
	for _, f := range []*cache.Filter{cache.NewFilter(selector(t, "app=a3"), nil), cache.NewFilter(nil, []cache.FieldTerm{{Index: 0, Value: "n3"}})} {
		out = append(out, strings.Join(names(c.Snapshot("pods"), f, "", "", ""), " "))
	}
	for _, bad := range c.Corrupt() {
		out = append(out, fmt.Sprint(bad))
	}
	return append(out, fmt.Sprint(c.Revision()))
}

func TestCacheFileLoadsWhatTheDatabaseHas(t *testing.T) {
	const n = 600
	for name, change := range map[string]func(v *attesting){
		"nothing": func(*attesting) {},
		"some": func(v *attesting) {
			for i := range 100 {
				name := fmt.Sprintf("p%d", i*3)
				switch ns := fmt.Sprintf("ns%d", i*3%7); i % 3 {
				case 0:
					v.write(ns, name, largePod(name, i+7))
				case 1:
					v.remove(ns, name)
				default:
					v.remove(ns, name)
					v.write(ns, name, largePod(name, i+9))
				}
				v.write("new", name, largePod(name, i))
			}
		},
		"all": func(v *attesting) {
			for key := range v.live {
				v.change(key, v.live[key].value, true)
			}
			v.write("new", "one", largePod("one", 1))
		},
		"older": func(v *attesting) { // the database is an older one, which vouches all the same
			for key, s := range v.live {
				if s.revision > n/2 {
					delete(v.live, key)
				}
			}
			v.revision = n / 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, path := copied(t, n)
			change(v)
			got, done := loadedFrom(t, v, path)
			if done.FromRows != v.read || done.FromFile+done.FromRows != len(v.live) || done.Revision != v.revision {
				t.Fatalf("loaded %+v of %d live rows, of which %d were read", done, len(v.live), v.read)
			}
			if name == "nothing" && done.FromRows != 3 { // a secret, a kind of the server's own, and an unreadable object
				t.Fatalf("%d rows were read though nothing changed", done.FromRows)
			}
			whole := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
			if _, err := whole.Load(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			a, b := everything(t, got), everything(t, whole)
			for i := range b {
				if i >= len(a) || a[i] != b[i] {
					t.Fatalf("loaded from a cache file:\n%.300s\nloaded in full:\n%.300s", a[i], b[i])
				}
			}
			ch := v.write("later", "later", largePod("later", 3))
			got.Apply([]sqlstore.Change{ch})
			if got.Get("pods", "later", "later") == nil {
				t.Fatal("a later change is not there")
			}
		})
	}
}

func TestCacheFileHasNoSecrets(t *testing.T) {
	v, path := copied(t, 1200)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := blockfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	key, _ := v.known.Key(f.Name())
	about, err := f.Unseal(key)
	if err != nil {
		t.Fatal(err)
	}
	all := string(content) + string(about)
	if strings.Contains(all, "what all of them say") {
		t.Error("what the file has is plain")
	}
	for i := range f.Blocks() {
		b, err := f.Block(i, nil)
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	if strings.Contains(all, "hush") {
		t.Error("a secret is in the file")
	}
}

func TestCacheFileIsRefused(t *testing.T) {
	v, path := copied(t, 1200)
	refused := func(what string, want error, cfg *file.Config, known sqlstore.CacheFiles) {
		t.Helper()
		if _, err := file.Open(cfg, &known); !errors.Is(err, want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("rows were changed in place", file.ErrNotAttested, v.config(path), sqlstore.NewEpoch())
	other := v.config(path)
	other.Maker = "another"
	refused("another program", file.ErrOtherVersion, other, v.known)
	refused("no file", os.ErrNotExist, v.config(path+"x"), v.known)
	cfg := v.config(path)
	v.known = sqlstore.NewEpoch()
	c := cache.NewWith(podCatalogue(), cache.Config{})
	if _, err := c.WriteFile(t.Context(), cfg, v); !errors.Is(err, sqlstore.ErrEpochChanged) {
		t.Errorf("a file of another epoch was written: %v", err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestCacheFileLeavesOut: a cache file with objects that must not be in one any more, as they are encrypted now, is
// not read and goes, also where another version of the program wrote it.
func TestCacheFileLeavesOut(t *testing.T) {
	for _, maker := range []string{"this", "another"} {
		v, path := copied(t, 1200)
		cfg := v.config(path)
		cfg.Maker, cfg.Leave = maker, func(resource string) bool { return resource == "widgets.x" }
		if _, err := file.Open(cfg, &v.known); !errors.Is(err, file.ErrExcluded) {
			t.Fatalf("it is opened: %v", err)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there still: %v", err)
		}
	}
}

// FuzzCacheFile: a cache file whose blocks are anything, under the right key, is read or refused, and the
// loaded objects can be looked at.
func FuzzCacheFile(f *testing.F) {
	v, path := copied(f, 1200)
	good, err := blockfile.Open(path)
	if err != nil {
		f.Fatal(err)
	}
	key, _ := v.known.Key(good.Name())
	about, err := good.Unseal(key)
	if err != nil {
		f.Fatal(err)
	}
	for i := range good.Blocks() {
		b, err := good.Block(i, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(about, b[:min(len(b), 4<<10)], 1)
		f.Add(about, b, 3)
	}
	good.Close()
	f.Fuzz(func(t *testing.T, about, block []byte, count int) {
		var parts map[string]any
		if json.Unmarshal(about, &parts) != nil {
			return
		}
		parts["Blocks"] = []map[string]any{{"Resource": 0, "Objects": count}}
		about, _ = json.Marshal(parts)
		path := filepath.Join(t.TempDir(), "file")
		w, err := blockfile.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		if err := errors.Join(w.Add(block), w.Finish(about)); err != nil {
			t.Fatal(err)
		}
		if f, err := w.Commit(); err != nil {
			t.Fatal(err)
		} else {
			f.Close()
		}
		known := sqlstore.NewEpoch()
		known.Add(w.Name(), w.Key())
		p, err := file.Open(v.config(path), &known)
		if err != nil {
			return
		}
		defer p.Close()
		c := cache.New(podCatalogue())
		if _, err := c.LoadFile(t.Context(), v, v, p); err != nil {
			return
		}
		c.Snapshot("pods").Ascend("", "", "", func(it *cache.Item) bool { _ = it.Meta(); return true })
		names(c.Snapshot("pods"), cache.NewFilter(selector(t, "app=a3"), nil), "", "", "")
	})
}

// TestCacheFileLeavesPackingOn: objects written after a start from a cache file are packed like all others.
func TestCacheFileLeavesPackingOn(t *testing.T) {
	v, path := copied(t, 1200)
	c, _ := loadedFrom(t, v, path)
	before, _, _ := c.Packed()
	for i := range 600 {
		name := fmt.Sprintf("later%d", i)
		c.Apply([]sqlstore.Change{v.write("later", name, largePod(name, i))})
	}
	pack(t, c)
	if now, _, _ := c.Packed(); now < before+500 {
		t.Errorf("%d objects are packed where %d were, after 600 were written", now, before)
	}
}
