package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// bothWays are drivers of one file, which read it by the two ways.
func bothWays(t *testing.T, path string) (lent, standard *sqlite.Driver) {
	t.Helper()
	lent = file{path: path}.Open(t).(*sqlite.Driver)
	standard = file{path: path, cfg: sqlite.Config{BulkReads: sqlite.StandardReads}}.Open(t).(*sqlite.Driver)
	if !lent.Lends() || standard.Lends() {
		t.Fatalf("lends: %v, and as SQLite's Go driver does: %v", lent.Lends(), standard.Lends())
	}
	return lent, standard
}

// keeper copies what is lent, and spoils it.
type keeper struct {
	mu   sync.Mutex
	rows []sqlstore.Row
}

func (k *keeper) take(rows []sqlstore.Row) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range rows {
		lent := r.Value
		r.Value = bytes.Clone(lent)
		k.rows = append(k.rows, r)
		clear(lent[:cap(lent)])
	}
	return nil
}

func (k *keeper) sorted(err error) ([]sqlstore.Row, string) {
	slices.SortFunc(k.rows, func(a, b sqlstore.Row) int { return int(a.Revision - b.Revision) })
	if err != nil {
		return k.rows, err.Error()
	}
	return k.rows, ""
}

func readAll(t *testing.T, d *sqlite.Driver, at int64) ([]sqlstore.Row, string) {
	var k keeper
	return k.sorted(d.ReadAll(t.Context(), at, k.take))
}

func readRows(t *testing.T, d *sqlite.Driver, revisions ...int64) ([]sqlstore.Row, string) {
	var k keeper
	return k.sorted(d.ReadRows(t.Context(), revisions, k.take))
}

// differing is the first row of got that is not as that of want. Values may be too large to be shown.
func differing(want, got []sqlstore.Row) string {
	for i := range want {
		if i == len(got) || got[i].Key != want[i].Key || got[i].Revision != want[i].Revision || got[i].Created != want[i].Created || !bytes.Equal(got[i].Value, want[i].Value) {
			return fmt.Sprintf("%d rows, of %d the first other one in the place of %v at revision %d", len(got), len(want), want[i].Key, want[i].Revision)
		}
	}
	if len(got) > len(want) {
		return fmt.Sprintf("%d rows, of %d", len(got), len(want))
	}
	return ""
}

func execAll(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%.100s: %v", s, err)
		}
	}
}

// cellsByHand are columns that somebody may have written, as SQL.
var cellsByHand = []struct{ resource, namespace, name, created, value string }{
	{"'pods'", "'n'", "'plain'", "7", `'{"a":1}'`},
	{"'pods'", "'n'", "'a blob'", "7", `x'7b7d'`},
	{"'pods'", "'n'", "'empty'", "7", "x''"},
	{"'pods'", "'n'", "'empty text'", "7", "''"},
	{"'pods'", "'n'", "'none'", "7", "NULL"},
	{"'pods'", "'n'", "'whole'", "7", "42"},
	{"'pods'", "'n'", "'lowest'", "7", "-9223372036854775808"},
	{"'pods'", "'n'", "'fraction'", "7", "0.1"},
	{"'pods'", "'n'", "'endless'", "7", "9e999"},
	{"'pods'", "'n'", "'zeros'", "7", "zeroblob(70000)"},
	{"'pods'", "'n'", "'larger than a piece'", "7", "zeroblob(1500000)"},
	{"'pods'", "'n'", "'text of many pages'", "7", "printf('%.*c', 1500000, 'x')"},
	{"'pods'", "'n'", "'a zero in it'", "7", "CAST(x'610062' AS TEXT)"},
	{"'pods'", "'n'", "'no UTF-8'", "7", "CAST(x'fffe80' AS TEXT)"},
	{"'höhe'", "'日本'", "'𝄞'", "7", "'größe 𝄞'"},
	{"''", "''", "''", "7", "'x'"},
	{"x'706f6473'", "x'6e'", "x'6100ff'", "7", "'x'"},
	{"NULL", "NULL", "NULL", "7", "'x'"},
	{"1", "2.5", "NULL", "7", "'x'"},
	{"'pods'", "'n'", "'text'", "'seven'", "'x'"},
	{"'pods'", "'n'", "'half'", "7.5", "'x'"},
	{"'pods'", "'n'", "'a number as text'", "'8'", "'x'"},
	{"'pods'", "'n'", "'nothing'", "NULL", "'x'"},
	{"'pods'", "'n'", "'bytes'", "x'07'", "'x'"},
}

// TestLentCells holds what is lent to what SQLite's Go driver gives of the same columns, whatever lies in them.
func TestLentCells(t *testing.T) {
	for _, encoding := range []string{"UTF-8", "UTF-16le"} {
		t.Run(encoding, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			execAll(t, path, "PRAGMA encoding = '"+encoding+"'", "CREATE TABLE other (a)")
			if err := (file{path: path}).Open(t).Close(); err != nil {
				t.Fatal(err)
			}
			execAll(t, path, "PRAGMA writable_schema = ON", "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE name = 'kv'")
			statements := []string{"DROP INDEX kv_live"} // keys are not what they should be
			for i, c := range cellsByHand {
				statements = append(statements, fmt.Sprintf("INSERT INTO kv (revision, resource, namespace, name, created_revision, deleted, value, written_at) VALUES (%d, %s, %s, %s, %s, 0, %s, 1)",
					i+1, c.resource, c.namespace, c.name, c.created, c.value))
			}
			head := int64(len(cellsByHand))
			execAll(t, path, append(statements, fmt.Sprintf("UPDATE kv_meta SET value = %d WHERE key IN ('revision', 'floor')", head))...)
			lent, standard := bothWays(t, path)
			wrong := 0
			for revision := int64(1); revision <= head+1; revision++ { // the last one is not there
				want, failed := readRows(t, standard, revision)
				got, err := readRows(t, lent, revision)
				if diff := differing(want, got); diff != "" || err != failed {
					t.Errorf("revision %d: %q, want %q; %s", revision, err, failed, diff)
				}
				if failed != "" {
					wrong++
					execAll(t, path, fmt.Sprintf("DELETE FROM kv WHERE revision = %d", revision))
				} else if row, err := lent.Row(t.Context(), revision); err != nil || !bytes.Equal(row.Value, got[0].Value) || row.Key != got[0].Key {
					t.Errorf("revision %d is read by itself as %v, and lent as %v: %v", revision, row.Key, got[0].Key, err)
				}
			}
			if wrong != 5 {
				t.Errorf("%d rows had faults", wrong)
			}
			var all []int64
			want, failed := readAll(t, standard, head)
			got, err := readAll(t, lent, head)
			if diff := differing(want, got); diff != "" || failed+err != "" || len(got) != len(cellsByHand)-4 {
				t.Errorf("all %d rows: %q, %q; %s", len(got), failed, err, diff)
			}
			for _, r := range got {
				all = append(all, r.Revision)
			}
			execAll(t, path, "CREATE TABLE another (a)") // statements are made anew
			if again, err := readRows(t, lent, all...); err != "" || differing(want, again) != "" {
				t.Errorf("with another table there are %d rows: %q", len(again), err)
			}
		})
	}
}

// filled is a file with many rows of different lengths.
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

// uneven has values that share a piece, fill one, and are larger than one.
func uneven(i int64) int {
	switch {
	case i%500 == 0:
		return 300_000
	case i%7 == 0:
		return 9000
	}
	return int(i*37) % 2000
}

// TestLentPieces: values of one piece lie side by side in memory that is used again.
func TestLentPieces(t *testing.T) {
	const n = 10_000
	lent, standard := bothWays(t, filled(t, n, uneven))
	want, failed := readAll(t, standard, n)
	got, err := readAll(t, lent, n)
	if failed+err != "" || len(got) != n {
		t.Fatalf("%d rows: %q, %q", len(got), failed, err)
	}
	for i := range got {
		r := &got[i]
		if !bytes.Equal(r.Value, bytes.Repeat([]byte{byte('a' + r.Revision%26)}, uneven(r.Revision))) {
			t.Fatalf("revision %d has %d bytes %.20q", r.Revision, len(r.Value), r.Value)
		}
	}
	if diff := differing(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLentMemory: what is made for a row is its name.
func TestLentMemory(t *testing.T) {
	const n = 5000
	lent, standard := bothWays(t, filled(t, n, func(int64) int { return 4000 }))
	made := func(d *sqlite.Driver) int64 {
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := d.ReadAll(b.Context(), n, func([]sqlstore.Row) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
		return r.AllocedBytesPerOp() / n
	}
	if bytes := made(lent); bytes > 400 { // with the first pieces, and pools that the race detector empties
		t.Errorf("%d bytes for a row of 4000", bytes)
	}
	if bytes := made(standard); bytes < 4000 {
		t.Errorf("SQLite's Go driver makes %d bytes for a row of 4000: it may do without the other way", bytes)
	}
}

// TestLentGivenUp: a reading that ends early, and one that the database is closed under, leave nothing behind.
func TestLentGivenUp(t *testing.T) {
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
			for _, d := range func() []*sqlite.Driver { a, b := bothWays(t, path); return []*sqlite.Driver{a, b} }() {
				var k keeper
				if err, want := give(t, d, k.take); !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				if name == "by the end of the driver" {
					continue
				}
				if rows, err := readAll(t, d, n); err != "" || len(rows) != n {
					t.Errorf("afterwards there are %d rows: %s", len(rows), err)
				}
			}
			if open := openFiles(t, path); name == "by the end of the driver" && open > 0 {
				t.Errorf("%d files are open still", open)
			}
		})
	}
}

// openFiles is how many files of a database this process has open; 0 where that is not known.
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

// TestLentLeavesNothing counts statements and what calls took, after readings of each kind.
func TestLentLeavesNothing(t *testing.T) {
	const n = 1000
	path := filled(t, n, func(int64) int { return 1000 })
	d := file{path: path}.Open(t).(*sqlite.Driver)
	for range 3 {
		readAll(t, d, n)
		readRows(t, d, 1, 2, 3)
		readRows(t, d, n+1)
		_ = d.ReadAll(t.Context(), n, func([]sqlstore.Row) error { return errors.New("enough") })
	}
	if left := d.LeftBehind(); left != 0 {
		t.Errorf("%d are left", left)
	}
	if err := d.Close(); err != nil || openFiles(t, path) > 0 {
		t.Errorf("closed with %d open files: %v", openFiles(t, path), err)
	}
}

// TestLentFromDamage: a page that is damaged is the same error.
func TestLentFromDamage(t *testing.T) {
	const n = 2000
	path := filled(t, n, func(int64) int { return 1000 })
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var page int64
	err = db.QueryRow("SELECT pageno FROM dbstat WHERE name = 'kv' AND pagetype = 'leaf' LIMIT 1 OFFSET 200").Scan(&page)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, 4096), (page-1)*4096)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	lent, standard := bothWays(t, path)
	_, want := readAll(t, standard, n)
	var k keeper
	err = lent.ReadAll(t.Context(), n, k.take)
	var damaged *sqlstore.CorruptError
	if !errors.As(err, &damaged) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// BenchmarkReadAll reads rows of 4 KB, all of them and by their revisions.
func BenchmarkReadAll(b *testing.B) {
	const n = 20_000
	path := filled(b, n, func(int64) int { return 4000 })
	var revisions []int64
	for i := range int64(n) {
		revisions = append(revisions, i+1)
	}
	none := func([]sqlstore.Row) error { return nil }
	for _, way := range []sqlite.BulkReads{sqlite.StandardReads, sqlite.LentReads} {
		d := file{path: path, cfg: sqlite.Config{BulkReads: way}}.Open(b).(*sqlite.Driver)
		for name, read := range map[string]func() error{
			"all":         func() error { return d.ReadAll(b.Context(), n, none) },
			"byRevisions": func() error { return d.ReadRows(b.Context(), revisions, none) },
		} {
			b.Run(fmt.Sprintf("%s/%s", name, way), func(b *testing.B) {
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
}
