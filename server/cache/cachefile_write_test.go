package cache_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// hot returns a cache of a database's objects, none of which is packed.
func hot(t testing.TB, v *attesting) *cache.Cache {
	t.Helper()
	c := cache.NewWith(podCatalogue(), cache.Config{PlainBytes: -1})
	if _, err := c.Load(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return c
}

// values returns how many objects of a cache file have their values in memory, and how many bytes the others take there.
func values(c *cache.Cache) (inMemory int, bytes int64) {
	for _, it := range all(c) {
		if !it.InCacheFile() {
			inMemory++
		}
	}
	_, _, bytes = c.Packed()
	return inMemory, bytes
}

// same compares everything that readers can see of two caches, twice: an object that was read may be plain the second time.
func same(t *testing.T, when string, c, want *cache.Cache) {
	t.Helper()
	for range 2 {
		if d := cmp.Diff(everything(t, want), everything(t, c)); d != "" {
			t.Fatalf("%s: %.3000s", when, d)
		}
	}
}

// TestValuesInTheFile: values that are in the cache file are not in memory, after a start and after the file was written. Readers
// see the same objects as in a cache that has everything in memory.
func TestValuesInTheFile(t *testing.T) {
	const n = 600
	v, path := copied(t, n)
	want := hot(t, v)
	c, _ := loadedFrom(t, v, path)
	if inMemory, bytes := values(c); inMemory > 0 || bytes > n*64 {
		t.Fatalf("after a start %d values are in memory; objects take %d bytes", inMemory, bytes)
	}
	same(t, "after a start", c, want)
	pack(t, c)
	if inMemory, _ := values(c); inMemory > 0 {
		t.Errorf("after reads %d values are in memory alone", inMemory)
	}
	for i := range 200 {
		name := fmt.Sprintf("p%d", i)
		ch := v.write(fmt.Sprintf("ns%d", i%7), name, largePod(name, i+5))
		c.Apply([]sqlstore.Change{ch})
		want.Apply([]sqlstore.Change{ch})
	}
	if inMemory, _ := values(c); inMemory != 200 {
		t.Errorf("after 200 writes %d values are in memory", inMemory)
	}
	former, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer former.Close()
	same(t, "after writes", c, want)
	if _, err := c.WriteFile(t.Context(), v.config(path), v); err != nil {
		t.Fatal(err)
	}
	if inMemory, _ := values(c); inMemory > 0 {
		t.Errorf("after the file was written %d values are in memory", inMemory)
	}
	if err := former.Truncate(0); err != nil {
		t.Fatal(err)
	}
	rows := v.read
	same(t, "in another file", c, want)
	if v.read > rows || c.FailedReads() > 0 {
		t.Errorf("%d rows were read, as values are in the former file still", v.read-rows)
	}
	c, done := loadedFrom(t, v, path)
	same(t, "after another start", c, want)
	if done.FromRows != 3 {
		t.Errorf("%d rows were read at the start", done.FromRows)
	}
}

// TestLoadedFromRowsThenFiled: values that were packed in memory leave it once they are in a file.
func TestLoadedFromRowsThenFiled(t *testing.T) {
	v, path := copied(t, 600)
	want, c := hot(t, v), cache.NewWith(podCatalogue(), cache.Config{PlainBytes: 1 << 20})
	if _, err := c.Load(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	pack(t, c)
	before, was := values(c)
	if _, err := c.WriteFile(t.Context(), v.config(path), v); err != nil {
		t.Fatal(err)
	}
	pack(t, c)
	if now, is := values(c); before != 600 || now > 0 || is > was/2 {
		t.Errorf("%d values were in memory, %d bytes packed, and then %d, %d bytes", before, was, now, is)
	}
	same(t, "after the file was written", c, want)
}

// TestValuesOfABrokenFile: values that cannot be read from the file are read from their rows, and are in the next file.
func TestValuesOfABrokenFile(t *testing.T) {
	for name, damage := range map[string]func(f *os.File, size int64) error{
		"nothing left": func(f *os.File, _ int64) error { return f.Truncate(0) },
		"cut off":      func(f *os.File, size int64) error { return f.Truncate(size / 2) },
		"flipped bits": func(f *os.File, size int64) error {
			var b [1]byte
			for at := int64(500); at < size; at += 10_000 {
				_, err := f.ReadAt(b[:], at)
				b[0] ^= 4
				if _, bad := f.WriteAt(b[:], at); err != nil || bad != nil {
					return errors.Join(err, bad)
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, path := copied(t, 600)
			want := hot(t, v)
			c, _ := loadedFrom(t, v, path)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			info, err := f.Stat()
			if err == nil {
				err = damage(f, info.Size())
			}
			if err != nil {
				t.Fatal(err)
			}
			first := c.Get("pods", "ns1", "p1")
			if got, whole := seen(first), seen(want.Get("pods", "ns1", "p1")); got != whole {
				t.Errorf("an object is\n%.300s, not\n%.300s", got, whole)
			}
			if done, err := c.WriteFile(t.Context(), v.config(path), v); err != nil || done.Objects != 601 {
				t.Fatalf("%d objects are in the next file: %v", done.Objects, err)
			}
			if c.FailedReads() == 0 {
				t.Error("the values that could not be read are not counted")
			}
			same(t, "after another file was written", c, want)
			c, done := loadedFrom(t, v, path)
			same(t, "after another start", c, want)
			if done.FromRows != 3 || c.FailedReads() > 0 {
				t.Errorf("%d rows were read at the start, and %d values not", done.FromRows, c.FailedReads())
			}
		})
	}
}

// TestFileThatCannotBeWritten: if the disk or the database refuses the file, everything stays where it was, and so does the
// last file.
func TestFileThatCannotBeWritten(t *testing.T) {
	v, path := copied(t, 600)
	want := hot(t, v)
	c, _ := loadedFrom(t, v, path)
	name := "p1"
	ch := v.write("ns1", name, largePod(name, 9))
	c.Apply([]sqlstore.Change{ch})
	want.Apply([]sqlstore.Change{ch})
	cfg := v.config(path)
	full := errors.New("no space left on device")
	cfg.Attest = func(context.Context, string, [32]byte) error { return full }
	if _, err := c.WriteFile(t.Context(), cfg, v); !errors.Is(err, full) {
		t.Fatalf("the file was written: %v", err)
	}
	if inMemory, _ := values(c); inMemory != 1 {
		t.Errorf("%d values are in memory", inMemory)
	}
	same(t, "without another file", c, want)
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	again, done := loadedFrom(t, v, path)
	same(t, "after a start", again, want)
	if done.FromRows != 4 {
		t.Errorf("%d rows were read at the start", done.FromRows)
	}
}

// TestFileWhileInUse: readers and writers go on while values move into one file after the other.
func TestFileWhileInUse(t *testing.T) {
	const n = 600
	v, path := copied(t, n)
	c, _ := loadedFrom(t, v, path)
	want := map[string]string{}
	for _, it := range all(c) {
		want[it.Namespace+it.Name] = string(it.Peek())
	}
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for r := range 3 {
		others.Go(func() {
			for i := r; ctx.Err() == nil; i++ {
				if i%n < 300 {
					i += 300 // the others are written
				}
				it := c.Get("pods", fmt.Sprintf("ns%d", i%n%7), fmt.Sprintf("p%d", i%n))
				var got []byte
				switch r {
				case 0:
					got = it.JSON()
				case 1:
					got = it.AppendJSON(nil)
				default:
					b, err := it.Bytes(cache.FormKey{Form: cache.FormProtobuf}, func(it *cache.Item) ([]byte, error) { return it.Peek(), nil })
					if err != nil {
						t.Error(err)
					}
					got = b
				}
				if w := want[it.Namespace+it.Name]; string(got) != w {
					t.Errorf("%.300s, not %.300s", got, w)
					return
				}
			}
		})
	}
	others.Go(func() {
		for ctx.Err() == nil {
			c.Pack(ctx)
		}
	})
	for round := range 4 {
		for i := range 300 {
			name := fmt.Sprintf("p%d", i)
			c.Apply([]sqlstore.Change{v.write(fmt.Sprintf("ns%d", i%7), name, largePod(name, i+round))})
		}
		if _, err := c.WriteFile(t.Context(), v.config(path), v); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	others.Wait()
	same(t, "in the end", c, hot(t, v))
}
