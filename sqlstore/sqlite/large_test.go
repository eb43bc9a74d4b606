package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

const patience = 2 * time.Minute

var object = sqlstore.Key{Resource: "pods", Namespace: "default", Name: "a"}

// number returns the one number of a query.
func (f file) number(t testing.TB, query string) (n int64) {
	t.Helper()
	db, err := sql.Open("sqlite", f.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// becomes waits for the number of a query.
func (f file) becomes(t testing.TB, want int64, query string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		n := f.number(t, query)
		if n == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s gives %d, want %d", query, n, want)
		}
	}
}

// leftOver counts what belongs to no row, and rows whose values are not there.
const leftOver = `SELECT (SELECT count(*) FROM kv_large l WHERE NOT EXISTS (SELECT 1 FROM kv WHERE revision = l.revision AND value = l.id AND typeof(value) = 'integer'))
	+ (SELECT count(*) FROM kv_pieces p WHERE NOT EXISTS (SELECT 1 FROM kv_large WHERE id = p.large))
	+ (SELECT count(*) FROM kv WHERE typeof(value) = 'integer' AND NOT EXISTS (SELECT 1 FROM kv_large WHERE id = value AND revision = kv.revision))`

const stored = `SELECT count(*) FROM kv_large`

// writeValue commits one op, staged or not, and returns its revision.
func writeValue(t testing.TB, d sqlstore.Driver, stage bool, verb sqlstore.Verb, expect int64, value []byte) int64 {
	t.Helper()
	ops := []sqlstore.Op{{Verb: verb, Key: object, Expect: expect, Value: value}}
	if stage {
		mustStage(t, d, ops)
		defer d.Unstage(ops, true)
	}
	out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: ops}}, time.Now())
	if err != nil || out[0].Err != nil {
		t.Fatal(err, out)
	}
	return out[0].Revisions[0]
}

func mustStage(t testing.TB, d sqlstore.Driver, ops []sqlstore.Op) {
	t.Helper()
	if err := d.Stage(t.Context(), ops); err != nil {
		t.Fatal(err)
	}
	if ops[0].Staged == 0 {
		t.Fatal("nothing was staged")
	}
}

func wantValue(t testing.TB, d sqlstore.Driver, value []byte) {
	t.Helper()
	row, err := d.Read(t.Context(), object, 0)
	if err != nil || row.Damaged != nil || !bytes.Equal(row.Value, value) {
		t.Fatalf("%d bytes, damage %v, error %v; want %d bytes", len(row.Value), row.Damaged, err, len(value))
	}
}

// TestCommitsOfLargeValuesAreShort: neither the commit of a staged value nor that which ends it writes the value.
func TestCommitsOfLargeValuesAreShort(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
	d := f.Open(t)
	const most = 40 // of 5,000 that the value has
	value := storetest.LargeJSON(1, 20<<20)
	revision := writeValue(t, d, false, sqlstore.Create, 0, []byte("{}"))
	for i := range 3 {
		ops := []sqlstore.Op{{Verb: sqlstore.Update, Key: object, Expect: revision, Value: value}}
		mustStage(t, d, ops)
		before := f.logPages(t)
		out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: ops}}, time.Now())
		if err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
		if n := f.logPages(t) - before; n > most {
			t.Errorf("commit %d wrote %d pages", i, n)
		}
		d.Unstage(ops, true)
		revision = out[0].Revisions[0]
	}
	wantValue(t, d, value)
	before := f.logPages(t)
	writeValue(t, d, false, sqlstore.Update, revision, []byte("{}"))
	if n := f.logPages(t) - before; n > most {
		t.Errorf("ending a value wrote %d pages", n)
	}
}

// TestLargeValuesLeaveNothing: values of writes that fail and of rows that are compacted go, and older binaries are let in again.
func TestLargeValuesLeaveNothing(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	compatible := func(want int64) {
		t.Helper()
		if n, err := f.compatible(); err != nil || n != want {
			t.Fatalf("binaries from schema %d on are let in, want %d; %v", n, want, err)
		}
	}
	empty := func() {
		t.Helper()
		f.becomes(t, 0, stored)
		if n := f.number(t, "SELECT count(*) FROM kv_pieces"); n != 0 {
			t.Fatalf("%d pieces are left", n)
		}
	}
	value := storetest.LargeJSON(1, 5<<20)
	compatible(sqlstore.UnpackedSchema)
	ops := []sqlstore.Op{{Verb: sqlstore.Create, Key: object, Value: value}}
	mustStage(t, d, ops)
	compatible(sqlstore.LargeSchema)
	d.Unstage(ops, false)
	empty()
	compatible(sqlstore.UnpackedSchema)

	revision := writeValue(t, d, true, sqlstore.Create, 0, value)
	revision = writeValue(t, d, false, sqlstore.Update, revision, value)
	vain := []sqlstore.Op{{Verb: sqlstore.Update, Key: object, Expect: revision - 1, Value: value}}
	if err := d.Stage(t.Context(), vain); err != nil || vain[0].Staged != 0 {
		t.Fatalf("a value whose condition does not hold was staged: %d, %v", vain[0].Staged, err)
	}
	d.Unstage(vain, false)
	revision = writeValue(t, d, true, sqlstore.Delete, revision, value)
	f.becomes(t, 0, leftOver)
	if n := f.number(t, stored); n != 3 {
		t.Fatalf("%d values are stored, want 3", n)
	}
	if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: 1, Past: map[string]int64{"": 0}}); err != nil {
		t.Fatal(err)
	}
	compatible(sqlstore.LargeSchema)
	if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: revision, Past: map[string]int64{"": revision}}); err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.Pack(t.Context(), d, 1, func(sqlstore.Packed) {}); err != nil {
		t.Fatal(err)
	}
	empty()
	compatible(sqlstore.PackedSchema)
	revision = writeValue(t, d, true, sqlstore.Create, 0, value)
	compatible(sqlstore.LargeSchema)
	revision = writeValue(t, d, false, sqlstore.Update, revision, []byte("{}"))
	if _, err := d.Trim(t.Context(), revision, 100); err != nil {
		t.Fatal(err)
	}
	empty()
	if n, err := f.compatible(); err != nil || n >= sqlstore.LargeSchema {
		t.Fatalf("binaries from schema %d on are let in; %v", n, err)
	}
	wantValue(t, d, []byte("{}"))
	storetest.CheckTable(t, d)
}

// TestCompactionWaitsForLargeValues: a command that has compacted the database has made room, and older binaries are let in.
func TestCompactionWaitsForLargeValues(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	revision := writeValue(t, d, true, sqlstore.Create, 0, storetest.LargeJSON(1, 20<<20))
	revision = writeValue(t, d, false, sqlstore.Update, revision, []byte("{}"))
	if floor, rows, err := upkeep.Compact(t.Context(), d, revision, nil); err != nil || floor != revision || rows != 1 {
		t.Fatalf("%d rows were deleted up to %d, %v", rows, floor, err)
	}
	if n := f.number(t, stored); n != 0 {
		t.Errorf("%d values are left", n)
	}
	if n, err := f.compatible(); err != nil || n != sqlstore.UnpackedSchema {
		t.Errorf("binaries from schema %d on are let in; %v", n, err)
	}
}

// TestLargeValuesOutlastRelaxedCommits: the end of reserved revisions does not let older binaries in.
func TestLargeValuesOutlastRelaxedCommits(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{Relaxed: []string{"leases"}}}
	d := f.Open(t)
	value := storetest.LargeJSON(1, sqlstore.LargeValue)
	revision := writeValue(t, d, true, sqlstore.Create, 0, value)
	d.Close()
	if n, err := f.compatible(); err != nil || n != sqlstore.LargeSchema {
		t.Fatal(n, err)
	}
	d = f.Open(t)
	wantValue(t, d, value)
	revision = writeValue(t, d, false, sqlstore.Update, revision, []byte("{}"))
	if _, err := d.Trim(t.Context(), revision, 100); err != nil {
		t.Fatal(err)
	}
	f.becomes(t, 0, stored)
	if n, err := f.compatible(); err != nil || n != sqlstore.RelaxedSchema {
		t.Fatal(n, err)
	}
	d.Close()
	if n, err := f.compatible(); err != nil || n != sqlstore.UnpackedSchema {
		t.Fatal(n, err)
	}
}

// TestDamagedPieces: a value that is not as it was written makes its row damaged, and no other. Compaction deletes the row in its time.
func TestDamagedPieces(t *testing.T) {
	for name, damage := range map[string]string{
		"a byte":       `UPDATE kv_pieces SET data = replace(CAST(data AS TEXT), 'metadata', 'metaDATA') WHERE piece = 0`,
		"no pieces":    `DELETE FROM kv_pieces`,
		"the first":    `DELETE FROM kv_pieces WHERE piece = 0`,
		"the last":     `DELETE FROM kv_pieces WHERE piece = (SELECT max(piece) FROM kv_pieces)`,
		"swapped":      `UPDATE kv_pieces SET piece = 3 - piece + 100 WHERE piece IN (1, 2); UPDATE kv_pieces SET piece = piece - 100 WHERE piece > 100`,
		"another id":   `UPDATE kv SET value = value + 1 WHERE name = 'a'`,
		"text":         `UPDATE kv SET value = '{}' WHERE name = 'a'`,
		"appended":     `INSERT INTO kv_pieces SELECT large, max(piece) + 1, x'20' FROM kv_pieces GROUP BY large`,
		"a far number": `UPDATE kv SET value = -9223372036854775807 WHERE name = 'a'`,
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db")}
			d := f.Open(t)
			mustApply(t, d, put("b", "{}"))
			revision := writeValue(t, d, true, sqlstore.Create, 0, storetest.LargeJSON(1, 2<<20))
			mustApply(t, d, put("c", "{}"))
			f.Exec(t, damage)
			for _, at := range []int64{0, revision} {
				row, err := d.Read(t.Context(), object, at)
				var damaged *sqlstore.DamageError
				if err != nil || !errors.As(row.Damaged, &damaged) || strings.Contains(damaged.Reason, "metadata") {
					t.Fatalf("at %d damage is %v, error %v", at, row.Damaged, err)
				}
			}
			var found []int64
			if err := d.CheckRows(t.Context(), true, func(differ []sqlstore.Row) error {
				for _, row := range differ {
					found = append(found, row.Revision)
				}
				return nil
			}); err != nil || len(found) != 1 || found[0] != revision {
				t.Fatalf("rows %v differ, %v; want %d", found, err, revision)
			}
			rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 10})
			if err != nil || len(rows) != 3 || rows[0].Damaged == nil || rows[1].Damaged != nil || rows[2].Damaged != nil {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			head := writeValue(t, d, true, sqlstore.Update, revision, storetest.LargeJSON(2, 2<<20))
			wantValue(t, d, storetest.LargeJSON(2, 2<<20))
			if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: head, Past: map[string]int64{"": head}}); err != nil {
				t.Fatal(err)
			}
			if err := sqlstore.Pack(t.Context(), d, 1, func(sqlstore.Packed) {}); err != nil {
				t.Fatalf("the damaged row stops compaction: %v", err)
			}
			if n := f.number(t, `SELECT count(*) FROM kv WHERE superseded_revision IS NOT NULL`); n != 0 {
				t.Fatalf("%d rows that ended below the floor are left", n)
			}
		})
	}
}

// TestValuesWithinRows: rows of builds before large values were stored in pieces are read, replaced, packed and compacted.
func TestValuesWithinRows(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	value := fmt.Appendf(nil, `"%s"`, strings.Repeat("x", 3<<20))
	within := func() {
		t.Helper()
		f.Exec(t, fmt.Sprintf(`UPDATE kv SET checksum = NULL, value = CAST('"' || replace(hex(zeroblob(%d)), '00', 'x') || '"' AS BLOB) WHERE superseded_revision IS NULL`, 3<<20))
	}
	revision := writeValue(t, d, false, sqlstore.Create, 0, []byte("{}"))
	within()
	wantValue(t, d, value)
	revision = writeValue(t, d, true, sqlstore.Update, revision, value)
	revision = writeValue(t, d, false, sqlstore.Update, revision, []byte("{}"))
	within()
	if n := f.number(t, stored); n != 1 {
		t.Fatalf("%d values are in pieces, want 1", n)
	}
	revision = writeValue(t, d, false, sqlstore.Update, revision, []byte("{}"))
	rows, err := d.Past(t.Context(), object, 0, 10)
	if err != nil || len(rows) != 4 {
		t.Fatal(len(rows), err)
	}
	for _, row := range rows[1:] {
		if !bytes.Equal(row.Value, value) || row.Damaged != nil {
			t.Fatalf("revision %d has %d bytes, damage %v", row.Revision, len(row.Value), row.Damaged)
		}
	}
	if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: revision, Past: map[string]int64{"": 0}}); err != nil {
		t.Fatal(err)
	}
	if done, err := d.Pack(t.Context(), sqlstore.Cursor{}, 10); err != nil || done.Rows == 0 {
		t.Fatal(done, err)
	}
	if row, err := d.Read(t.Context(), object, 1); err != nil || !bytes.Equal(row.Value, value) {
		t.Fatal(len(row.Value), err)
	}
}

// TestViewsShowLargeValues: views and statistics have whole values, also encrypted ones.
func TestViewsShowLargeValues(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	value := storetest.LargeJSON(7, 2<<20)
	revision := writeValue(t, d, true, sqlstore.Create, 0, value)
	sealed := append([]byte(sqlstore.SealHead("aesgcm", "k")+"\x00\xff"), value...)
	writeValue(t, d, true, sqlstore.Update, revision, sealed)
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var uid, labels, text string
	var size int64
	err = db.QueryRow(`SELECT uid, labels, bytes, value FROM history WHERE revision = 1 AND NOT encrypted`).Scan(&uid, &labels, &size, &text)
	if err != nil || uid != "u7" || labels != `{"ä":"7"}` || size != int64(len(value)) || text != string(value) {
		t.Fatalf("uid %s, labels %s, %d bytes, %d of text, %v", uid, labels, size, len(text), err)
	}
	var key string
	var none sql.NullString
	err = db.QueryRow(`SELECT bytes, value, encryption_key FROM objects WHERE encrypted`).Scan(&size, &none, &key)
	if err != nil || none.Valid || size != int64(len(sealed)) || key != "aesgcm:k" {
		t.Fatalf("%d bytes, value %v, key %s, %v", size, none.Valid, key, err)
	}
	if s, err := d.Stats(t.Context()); err != nil || len(s.Resources) != 1 || s.Resources[0].Bytes != int64(len(sealed)) {
		t.Fatalf("%+v, %v", s.Resources, err)
	}
}
