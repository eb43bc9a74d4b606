package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestLoadSpills: a restore takes no more memory than its cache, however many rows it has; the pages of other transactions stay in
// memory.
func TestLoadSpills(t *testing.T) {
	d := file{path: t.TempDir() + "/test.db"}.Open(t).(*sqlite.Driver)
	check := func(want bool) {
		t.Helper()
		if got, err := d.Spills(); err != nil || got != want {
			t.Errorf("pages are written before the end of a transaction: %v, want %v, %v", got, want, err)
		}
	}
	check(false)
	for _, failure := range []error{errors.New("the backup is cut"), nil} {
		rows := func(yield func(sqlstore.Row, error) bool) {
			check(true)
			key := sqlstore.Key{Resource: "pods", Namespace: "n", Name: "p"}
			yield(sqlstore.Row{Key: key, Revision: 1, Created: 1, Value: []byte("{}")}, failure)
		}
		if err := d.Load(t.Context(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: 1, Head: 1}, Rows: rows}); !errors.Is(err, failure) {
			t.Error(err)
		}
		check(false)
	}
}

// Replaced rows are gone from the table: revisions are far apart in one place and adjacent in another. Each
// row is passed on once, by several readers, wherever it is.
func TestReadAllOfUnevenRevisions(t *testing.T) {
	d := file{path: t.TempDir() + "/test.db"}.Open(t).(*sqlite.Driver)
	var want []int64
	for i := range int64(40) { // few, then many, then few again
		want = append(want, 1+i*1_000_000_007)
	}
	for i := range int64(10_000) {
		want = append(want, 50_000_000_000+i)
	}
	want = append(want, 1<<50)
	rows := func(yield func(sqlstore.Row, error) bool) {
		for _, revision := range want {
			key := sqlstore.Key{Resource: "pods", Namespace: "n", Name: fmt.Sprint("p", revision)}
			if !yield(sqlstore.Row{Key: key, Revision: revision, Created: revision, Value: []byte("{}")}, nil) {
				return
			}
		}
	}
	const head = 1 << 51
	if err := d.Load(t.Context(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: head, Head: head}, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[int64]int{}
	err := d.ReadAll(t.Context(), head, func(rows []sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range rows {
			seen[r.Revision]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range want {
		if seen[revision] != 1 {
			t.Fatalf("revision %d was handed out %d times", revision, seen[revision])
		}
	}
	if len(seen) != len(want) {
		t.Fatalf("%d rows, want %d", len(seen), len(want))
	}
}

// filled returns a file with many rows of different lengths.
func filled(t testing.TB, n int64, length func(i int64) int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{Unsynced: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rows := func(yield func(sqlstore.Row, error) bool) {
		for i := int64(1); i <= n; i++ {
			key := sqlstore.Key{Resource: "pods", Namespace: fmt.Sprint("n", i%3), Name: fmt.Sprint("p", i)}
			value := bytes.Repeat([]byte{byte('a' + i%26)}, length(i))
			if !yield(sqlstore.Row{Key: key, Revision: i, Created: i, Value: value}, nil) {
				return
			}
		}
	}
	if err := d.Load(t.Context(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: n, Head: n}, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadAllGivenUp: a reading that ends early, and one that the database is closed under, leave nothing behind.
func TestReadAllGivenUp(t *testing.T) {
	const n = 10_000
	path := filled(t, n, func(int64) int { return 1000 })
	for name, give := range map[string]func(t *testing.T, d *sqlite.Driver, take func([]sqlstore.Row) error) (err, want error){
		"by who takes": func(t *testing.T, d *sqlite.Driver, take func([]sqlstore.Row) error) (err, want error) {
			enough := errors.New("enough")
			return d.ReadAll(t.Context(), n, func([]sqlstore.Row) error { return enough }), enough
		},
		"by the context": func(t *testing.T, d *sqlite.Driver, take func([]sqlstore.Row) error) (err, want error) {
			ctx, cancel := context.WithCancel(t.Context())
			return d.ReadAll(ctx, n, func(rows []sqlstore.Row) error { cancel(); return take(rows) }), context.Canceled
		},
		"by the end of the driver": func(t *testing.T, d *sqlite.Driver, take func([]sqlstore.Row) error) (err, want error) {
			ended := make(chan error, 1)
			var once sync.Once
			err = d.ReadAll(t.Context(), n, func(rows []sqlstore.Row) error {
				once.Do(func() { go func() { ended <- d.Close() }() })
				return take(rows)
			})
			if e := <-ended; e != nil {
				t.Errorf("Close: %v", e)
			}
			if err == nil { // it was closed after the last piece
				err = sqlstore.ErrClosed
			}
			return err, sqlstore.ErrClosed
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := file{path: path}.Open(t).(*sqlite.Driver)
			count := func(into *atomic.Int64) func([]sqlstore.Row) error {
				return func(rows []sqlstore.Row) error { into.Add(int64(len(rows))); return nil }
			}
			var first, again atomic.Int64
			if err, want := give(t, d, count(&first)); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			if name != "by the end of the driver" {
				if err := d.ReadAll(t.Context(), n, count(&again)); err != nil || again.Load() != n {
					t.Errorf("afterwards there are %d rows: %v", again.Load(), err)
				}
			} else if open := openFiles(t, path); open > 0 {
				t.Errorf("%d files are open still", open)
			}
		})
	}
}

// openFiles counts the files of a database that this process has open; 0 if that is unknown.
func openFiles(t *testing.T, path string) (n int) {
	t.Helper()
	all, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range all {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, path) {
			n++
		}
	}
	return n
}

// TestCheckRowsCopiesNoValues: a server compares rows while it serves, so values must not become garbage of Go's heap.
func TestCheckRowsCopiesNoValues(t *testing.T) {
	const n, length = 400, 64 << 10
	f := file{path: filled(t, n, func(int64) int { return length })}
	d := f.Open(t).(*sqlite.Driver)
	var found []int64
	check := func() uint64 {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := d.CheckRows(t.Context(), true, func(differ []sqlstore.Row) error {
			for i := range differ {
				found = append(found, differ[i].Revision)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if took := check(); took > n*length/8 || len(found) > 0 {
		t.Errorf("the check of %d bytes allocated %d, and found %v", n*length, took, found)
	}
	f.Exec(t, "UPDATE kv SET value = CAST(replace(CAST(value AS TEXT), 'b', 'c') AS BLOB) WHERE revision = 27")
	if check(); !slices.Equal(found, []int64{27}) {
		t.Errorf("the check found %v after the value of revision 27 was changed", found)
	}
}

// BenchmarkReadAll reads rows of 4 KB, all of them and by their revisions.
func BenchmarkReadAll(b *testing.B) {
	const n = 20_000
	d := file{path: filled(b, n, func(int64) int { return 4000 })}.Open(b).(*sqlite.Driver)
	var revisions []int64
	for i := range int64(n) {
		revisions = append(revisions, i+1)
	}
	none := func([]sqlstore.Row) error { return nil }
	for name, read := range map[string]func() error{
		"all":         func() error { return d.ReadAll(b.Context(), n, none) },
		"byRevisions": func() error { return d.ReadRows(b.Context(), revisions, none) },
		"indexes":     func() error { return d.CheckRows(b.Context(), false, none) },
		"rows":        func() error { return d.CheckRows(b.Context(), true, none) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
