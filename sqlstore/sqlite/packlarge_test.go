package sqlite_test

import (
	"bytes"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// logPages returns the number of pages in the write-ahead log, and copies none.
func (f file) logPages(t testing.TB) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var busy, copied int
	if err := db.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &n, &copied); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPackingLeavesLargeValues: packing does not write large values, for which other writers would wait. They stay readable, as do
// the later states of their object, until its history ends.
func TestPackingLeavesLargeValues(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{NoCheckpoint: true}}
	d := f.Open(t)
	large := func(seed int) []byte { return storetest.LargeJSON(seed, 2<<20) }
	values := [][]byte{[]byte(`{"n":1}`), large(2), []byte(`{"n":3}`), large(4), []byte(`{"n":5}`), large(6)}
	for i, value := range values {
		verb := sqlstore.Update
		if i == 0 {
			verb = sqlstore.Create
		}
		writeValue(t, d, len(value) > 10, verb, int64(i), value)
	}
	const most = 100 // of 500 that a large value has
	// packed raises the floors, packs, and compares what can be read from a revision on.
	packed := func(past int64, ended, inPacks int64) {
		t.Helper()
		before := f.logPages(t)
		if _, err := d.Retain(t.Context(), sqlstore.Floors{Log: 6, Past: map[string]int64{"": past}}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second finds nothing to do
			if err := sqlstore.Pack(t.Context(), d, 1, func(sqlstore.Packed) {}); err != nil {
				t.Fatal(err)
			}
		}
		if n := f.logPages(t) - before; n > most {
			t.Errorf("packing wrote %d pages", n)
		}
		if err := sqlstore.Forget(t.Context(), d, 1); err != nil {
			t.Fatal(err)
		}
		if n := f.number(t, `SELECT count(*) FROM kv WHERE superseded_revision IS NOT NULL`); n != ended {
			t.Errorf("%d rows are not packed, want %d", n, ended)
		}
		if n := f.number(t, `SELECT coalesce(sum(count), 0) FROM kv_packed`); n != inPacks {
			t.Errorf("packs have %d rows, want %d", n, inPacks)
		}
		f.becomes(t, 0, leftOver)
		rows, err := d.Past(t.Context(), object, 0, 10)
		if want := len(values) - int(max(past, 1)) + 1; err != nil || len(rows) != want {
			t.Fatalf("%d rows are readable, want %d; %v", len(rows), want, err)
		}
		for i, row := range rows {
			revision := int64(len(values) - i)
			at, err := d.Read(t.Context(), object, revision)
			for _, row := range []sqlstore.Row{row, at} {
				if want := values[revision-1]; err != nil || row.Revision != revision || row.Damaged != nil || !bytes.Equal(row.Value, want) {
					t.Fatalf("revision %d has %d bytes as of %d, want %d; damage %v, error %v", revision, len(row.Value), row.Revision, len(want), row.Damaged, err)
				}
			}
		}
	}
	packed(0, 4, 1)
	packed(3, 2, 1)
	packed(6, 0, 0)
	if n := f.number(t, stored); n != 1 {
		t.Errorf("%d values are stored, want the live one", n)
	}
	storetest.CheckTable(t, d)
}
