package postgres_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// filled is a database with many rows of different lengths.
func filled(t testing.TB, n int64, length func(i int64) int) database {
	t.Helper()
	db := newDatabase(t, postgres.Config{})
	rows := func(yield func(sqlstore.Row, error) bool) {
		for i := int64(1); i <= n; i++ {
			key := sqlstore.Key{Resource: "pods", Namespace: fmt.Sprintf("n%d", i/100), Name: fmt.Sprintf("p%d", i)}
			value := bytes.Repeat([]byte{byte('a' + i%26)}, length(i))
			if !yield(sqlstore.Row{Key: key, Revision: i, Created: i, Value: value, WrittenAt: time.Unix(1, 0)}, nil) {
				return
			}
		}
	}
	d := db.Open(t).(*postgres.Driver)
	if err := d.Load(t.Context(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: n, Head: n}, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	return db
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

// read is what a reading lends, in the order of revisions, and the last words of its error.
func read(reading func(take func([]sqlstore.Row) error) error) (rows []string, failed string) {
	var k keeper
	err := reading(k.take)
	slices.SortFunc(k.rows, func(a, b sqlstore.Row) int { return cmp.Compare(a.Revision, b.Revision) })
	for i := range k.rows {
		r := &k.rows[i]
		rows = append(rows, fmt.Sprintf("%d %d %q %q %q %d %x", r.Revision, r.Created, r.Key.Resource, r.Key.Namespace, r.Key.Name, len(r.Value), sha256.Sum256(r.Value)))
	}
	var gone *sqlstore.CompactedError
	switch {
	case err == nil || errors.As(err, &gone):
	case strings.Contains(err.Error(), "can't scan"):
		failed = err.Error()[strings.Index(err.Error(), "can't scan"):]
	default:
		failed = err.Error()
	}
	return rows, failed
}

// ways are the ways in which a connection may ask, which have columns come in different forms.
var ways = map[string]func(database) database{
	"as always": func(db database) database { return db },
	"polling":   func(db database) database { db.cfg.Poll = true; return db },
	"simple":    func(db database) database { db.url += "&default_query_exec_mode=simple_protocol"; return db },
	"described": func(db database) database { db.url += "&default_query_exec_mode=describe_exec"; return db },
	"escaped":   func(db database) database { db.cfg.Poll = true; db.url += "&bytea_output=escape"; return db },
}

// cellsByHand are columns that somebody may have written, as SQL.
var cellsByHand = []struct{ resource, namespace, name, created, value string }{
	{"'pods'", "'n'", "'plain'", "7", `'{"a":1}'`},
	{"'pods'", "'n'", "'empty'", "7", "''"},
	{"'pods'", "'n'", "'none'", "7", "NULL"},
	{"'pods'", "'n'", "'every byte'", "7", `'\x00010a0d275c5c787f80ff'`},
	{"'pods'", "'n'", "'as hex looks'", "7", `convert_to('\x6161', 'UTF8')`},
	{"'pods'", "'n'", "'larger than a piece'", "7", "convert_to(repeat('x', 1500000), 'UTF8')"},
	{"'höhe'", "'日本'", "'𝄞'", "7", "convert_to('größe 𝄞', 'UTF8')"},
	{"''", "''", "''", "0", "'x'"},
	{"'pods'", "'n'", "'lowest'", "-9223372036854775808", "'x'"},
	{"'pods'", "'n'", "'highest'", "9223372036854775807", "'x'"},
	{"NULL", "'n'", "'no resource'", "7", "'x'"},
	{"'pods'", "NULL", "'no namespace'", "7", "'x'"},
	{"'pods'", "'n'", "NULL", "7", "'x'"},
	{"'pods'", "'n'", "'no number'", "NULL", "'x'"},
}

// columnsByHand are what somebody may have made of the columns, one after the other, and took back.
var columnsByHand = []struct{ name, made, back string }{
	{"as they are", "", ""},
	{"other numbers", "created_revision TYPE numeric", "created_revision TYPE int8"},
	{"numbers in words", "created_revision TYPE text", "created_revision TYPE int8 USING created_revision::int8"},
	{"bounded text", "name TYPE varchar(100)", "name TYPE text"},
	{"values in words", "value TYPE text USING encode(value, 'base64')", "value TYPE bytea USING decode(value, 'base64')"},
	{"smaller numbers", "created_revision TYPE int4 USING greatest(-1, least(created_revision, 1))", "created_revision TYPE int8"},
}

// TestLentCells holds what is lent to what package pgx decodes of the same columns, whatever lies in them, in whatever
// form it comes.
func TestLentCells(t *testing.T) {
	db := newDatabase(t, postgres.Config{})
	if err := db.Open(t).Close(); err != nil {
		t.Fatal(err)
	}
	head := int64(len(cellsByHand))
	statements := []string{"DROP VIEW objects, history", "DROP TRIGGER kv_changed_in_place ON kv", "DROP INDEX kv_live", "DROP INDEX kv_past", "DROP INDEX kv_ended"} // keys are not what they should be
	for _, column := range []string{"resource", "namespace", "name", "created_revision", "value"} {
		statements = append(statements, "ALTER TABLE kv ALTER COLUMN "+column+" DROP NOT NULL")
	}
	for i, c := range cellsByHand {
		statements = append(statements, fmt.Sprintf("INSERT INTO kv (revision, resource, namespace, name, created_revision, deleted, value, written_at) VALUES (%d, %s, %s, %s, %s, false, %s, now())",
			i+1, c.resource, c.namespace, c.name, c.created, c.value))
	}
	statements = append(statements, fmt.Sprintf("UPDATE kv_meta SET number = %d WHERE key IN ('revision', 'floor')", head))
	db.Exec(t, strings.Join(statements, ";"))
	for _, columns := range columnsByHand {
		t.Run(columns.name, func(t *testing.T) {
			if columns.made != "" {
				db.Exec(t, "ALTER TABLE kv ALTER COLUMN "+columns.made)
				defer db.Exec(t, "ALTER TABLE kv ALTER COLUMN "+columns.back)
			}
			for name, way := range ways {
				d := way(db).Open(t).(*postgres.Driver)
				found, faults := 0, 0
				for revision := int64(1); revision <= head+1; revision++ { // the last one is not there
					want, wrong := read(func(take func([]sqlstore.Row) error) error { return d.ScanRows(t.Context(), []int64{revision}, take) })
					got, err := read(func(take func([]sqlstore.Row) error) error { return d.ReadRows(t.Context(), []int64{revision}, take) })
					if !slices.Equal(want, got) || err != wrong {
						t.Errorf("%s: revision %d is lent as %q, %q, and decoded as %q, %q", name, revision, got, err, want, wrong)
					}
					if found += len(got); err != "" {
						faults++
					}
				}
				if columns.made == "" && name != "escaped" && (found != 10 || faults != 4) {
					t.Errorf("%s: %d rows were found, and %d had faults", name, found, faults)
				}
			}
		})
	}
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
	const n = 3000
	db := filled(t, n, uneven)
	var revisions []int64
	for i := range int64(n) {
		revisions = append(revisions, i+1)
	}
	for name, way := range ways {
		d := way(db).Open(t).(*postgres.Driver)
		want, wrong := read(func(take func([]sqlstore.Row) error) error { return d.ScanRows(t.Context(), revisions, take) })
		if name != "escaped" && (len(want) != n || wrong != "") {
			t.Fatalf("%s: %d rows, %s", name, len(want), wrong)
		}
		for reading, lend := range map[string]func(func([]sqlstore.Row) error) error{
			"all":          func(take func([]sqlstore.Row) error) error { return d.ReadAll(t.Context(), n, take) },
			"by revisions": func(take func([]sqlstore.Row) error) error { return d.ReadRows(t.Context(), revisions, take) },
		} {
			if got, err := read(lend); name == "escaped" && err != wrong || name != "escaped" && (!slices.Equal(got, want) || err != "") {
				t.Errorf("%s, %s: %d rows, %q", name, reading, len(got), err)
			}
		}
	}
}

// TestLentMemory: what is made for a row is its name, and what it takes to ask.
func TestLentMemory(t *testing.T) {
	const n = 2000
	db := filled(t, n, func(int64) int { return 4000 })
	none := func([]sqlstore.Row) error { return nil }
	var revisions []int64
	for i := range int64(n) {
		revisions = append(revisions, i+1)
	}
	for name, way := range ways {
		if name == "escaped" {
			continue
		}
		d := way(db).Open(t).(*postgres.Driver)
		for reading, lend := range map[string]struct {
			read func() error
			most uint64 // bytes for a row, with pools that the race detector empties
		}{
			"all": {func() error { return d.ReadAll(t.Context(), n, none) }, 1000},
			"fifty by fifty": {func() error {
				for some := range slices.Chunk(revisions, 50) {
					if err := d.ReadRows(t.Context(), some, none); err != nil {
						return err
					}
				}
				return nil
			}, 3000},
		} {
			var before, after runtime.MemStats
			for range 2 {
				runtime.ReadMemStats(&before)
				if err := lend.read(); err != nil {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
			}
			if made := (after.TotalAlloc - before.TotalAlloc) / n; made > lend.most {
				t.Errorf("%s, %s: %d bytes for a row of 4000", name, reading, made)
			}
		}
	}
}

// BenchmarkReadAll reads rows of 4 KB: all of them, by their revisions, and fifty by fifty.
func BenchmarkReadAll(b *testing.B) {
	const n = 20_000
	db := filled(b, n, func(int64) int { return 4000 })
	var revisions []int64
	for i := range int64(n) {
		revisions = append(revisions, i+1)
	}
	none := func([]sqlstore.Row) error { return nil }
	for _, cfg := range []postgres.Config{{}, {Poll: true}} {
		db.cfg = cfg
		d := db.Open(b).(*postgres.Driver)
		for name, read := range map[string]func() error{
			"all":         func() error { return d.ReadAll(b.Context(), n, none) },
			"byRevisions": func() error { return d.ReadRows(b.Context(), revisions, none) },
			"fifties": func() error {
				for some := range slices.Chunk(revisions, 50) {
					if err := d.ReadRows(b.Context(), some, none); err != nil {
						return err
					}
				}
				return nil
			},
		} {
			b.Run(fmt.Sprintf("%s/poll=%v", name, cfg.Poll), func(b *testing.B) {
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
