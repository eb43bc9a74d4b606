package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestLogIsCopiedDuringWrites writes more than a log should hold and checks that it is copied without the
// writer's help, and begun anew.
func TestLogIsCopiedDuringWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var busy, pages, copied int
	look := func() {
		t.Helper()
		if err := db.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &copied); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name string, objects, kib int) {
		t.Helper()
		var batch []sqlstore.Txn
		for i := range objects {
			key := sqlstore.Key{Resource: "pods", Name: fmt.Sprint(name, i)}
			batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key, Value: bytes.Repeat([]byte("x"), kib<<10)}}})
		}
		if out, err := d.Apply(t.Context(), batch, time.Now()); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	end := time.Now().Add(2 * time.Minute)
	write("big", 9, 2000) // 4,500 pages, fewer than make SQLite do it by itself
	for round := 0; ; round++ {
		for copied == 0 || copied < pages {
			if time.Now().After(end) {
				t.Fatalf("%d of %d pages are copied", copied, pages)
			}
			time.Sleep(5 * time.Millisecond)
			look()
		}
		write(fmt.Sprintf("small%d-", round), 1, 1)
		if look(); pages > 0 && pages <= 100 {
			break
		}
		// A writer that comes before the copier has released the lock appends to the existing log.
		if time.Now().After(end) {
			t.Fatalf("after the log was copied it goes on with %d pages", pages)
		}
	}
}

// TestLogIsLeftAlone: where another program copies the log, nothing of it is copied here,
// however long it is, and all that was written is read.
func TestLogIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{NoCheckpoint: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var busy, before, pages, copied int
	if err := db.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &before); err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // 20,000 pages, more than SQLite would leave
		op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Name: fmt.Sprint(i)}, Value: bytes.Repeat([]byte("x"), 2<<20)}
		if out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	if err := db.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &copied); err != nil || pages < 20_000 || copied != before {
		t.Fatalf("%d pages, %d copied, %d before: %v", pages, copied, before, err)
	}
	if b, err := d.Bounds(t.Context()); err != nil || b.Head != 40 {
		t.Fatal(b, err)
	}
}
