package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func put(name, value string) sqlstore.Txn {
	return sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Namespace: "default", Name: name}, Value: []byte(value)}}}
}

func mustApply(t *testing.T, d sqlstore.Driver, txns ...sqlstore.Txn) {
	t.Helper()
	out, err := d.Apply(t.Context(), txns, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
}

func TestFull(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{MaxBytes: 1 << 20}}
	d := f.Open(t)
	value := strings.Repeat("x", 10_000)
	k := sqlstore.Key{Resource: "pods", Namespace: "default", Name: "a"}
	mustApply(t, d, put("a", value))
	revision := int64(1)
	write := func() error {
		out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: k, Expect: revision, Value: []byte(value)}}}}, time.Now())
		if err != nil {
			return err
		}
		revision = out[0].Revisions[0]
		return out[0].Err
	}
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = write()
	}
	if !errors.Is(err, sqlstore.ErrFull) {
		t.Fatalf("filling the file gave %v", err)
	}
	for range 3 { // refused again, with nothing written
		if err := write(); !errors.Is(err, sqlstore.ErrFull) {
			t.Fatalf("a write into a full file gave %v", err)
		}
	}
	if row, err := d.Read(t.Context(), k, 0); err != nil || row.Revision != revision {
		t.Fatalf("reading from a full file gave %d, %v", row.Revision, err)
	}
	if b, err := d.Bounds(t.Context()); err != nil || b.Head != revision {
		t.Fatalf("the bounds of a full file are %v, %v", b, err)
	}
	if n, err := d.Trim(t.Context(), revision, 1000); err != nil || n == 0 {
		t.Fatalf("compacting a full file gave %d, %v", n, err)
	}
	if err := write(); err != nil {
		t.Fatalf("after compaction a write gave %v", err)
	}
	storetest.CheckTable(t, d)
}

func TestBusy(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{BusyTimeout: 20 * time.Millisecond}}
	d := f.Open(t).(*sqlite.Driver)
	end, err := d.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Apply(t.Context(), []sqlstore.Txn{put("a", "a")}, time.Now()); !errors.Is(err, sqlstore.ErrBusy) {
		t.Fatalf("a write beside another's transaction gave %v", err)
	}
	if _, err := d.Bounds(t.Context()); err != nil {
		t.Fatalf("a read beside a writer gave %v", err)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	mustApply(t, d, put("a", "a"))
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	var corrupt *sqlstore.CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("opening a damaged file gave %v", err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Fatalf("the message has several lines: %v", err)
	}
}

func TestMissingFolder(t *testing.T) {
	if _, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "no", "test.db"), sqlite.Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("opening in a missing folder gave %v", err)
	}
}

// TestDamagedValue: a value that was changed by hand is read as it is: the store does not check values.
func TestDamagedValue(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	mustApply(t, d, put("a", `{"a":1}`), put("b", `{"b":1}`), put("c", `{"c":1}`))
	f.Exec(t, `UPDATE kv SET value = 'no {json' WHERE name = 'a'`)
	f.Exec(t, `UPDATE kv SET value = x'00ff' WHERE name = 'b'`)
	rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Resource: "pods", Limit: 10})
	if err != nil || len(rows) != 3 || string(rows[0].Value) != "no {json" || string(rows[1].Value) != "\x00\xff" {
		t.Fatalf("the scan gave %v, %v", rows, err)
	}
}

func TestHoleInTheLog(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	mustApply(t, d, put("a", "a"), put("b", "b"), put("c", "c"))
	for _, damage := range []string{`DELETE FROM kv WHERE revision = 2`, `DELETE FROM kv WHERE revision = 3`} {
		f.Exec(t, damage)
		_, err := d.Changes(t.Context(), 0, 10, false)
		var corrupt *sqlstore.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Revision != 2 {
			t.Fatalf("a log with a hole gave %v", err)
		}
	}
}

func TestSchema(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	mustApply(t, d, put("a", "a"))
	d.Close()
	f.Exec(t, `UPDATE schema_migrations SET version = 99`)
	f.Open(t).Close() // newer, but made to be used by this binary
	f.Exec(t, `UPDATE kv_meta SET value = 98 WHERE key = 'schema_compatible'`)
	_, err := sqlite.Open(t.Context(), f.path, sqlite.Config{})
	var schema *sqlstore.SchemaError
	if !errors.As(err, &schema) || schema.Found != 99 || schema.Needs != 98 || !strings.Contains(err.Error(), "migration 98") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("opening a newer database gave %v", err)
	}
}

func TestRestatedBeneath(t *testing.T) {
	d := file{path: filepath.Join(t.TempDir(), "test.db")}.Open(t)
	storetest.ReplacedWhilePacking(t, d, func(between func()) error { return d.(*sqlite.Driver).PackAround(t.Context(), between) })
}

func TestOlderBinaries(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	storetest.OlderBinaries(t, f.Open(t), f.compatible)
}

// compatible returns the oldest schema whose binaries the file lets in.
func (f file) compatible() (n int64, err error) {
	db, err := sql.Open("sqlite", f.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRow(`SELECT value FROM kv_meta WHERE key = 'schema_compatible'`).Scan(&n)
	return n, err
}

// A process may die between a migration and the note that it is done.
func TestMigrationCutShort(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	mustApply(t, d, put("a", "a"))
	d.Close()
	for _, damage := range []string{`UPDATE schema_migrations SET dirty = 1`, `UPDATE schema_migrations SET version = 1, dirty = 1`} {
		f.Exec(t, damage)
		_, err := sqlite.Open(t.Context(), f.path, sqlite.Config{NoMigrate: true})
		var schema *sqlstore.SchemaError
		if !errors.As(err, &schema) {
			t.Fatalf("without migration a cut one gave %v", err)
		}
		d = f.Open(t)
		if _, err := d.Read(t.Context(), sqlstore.Key{Resource: "pods", Namespace: "default", Name: "a"}, 0); err != nil {
			t.Fatal(err)
		}
		storetest.CheckTable(t, d)
		d.Close()
	}
}

func TestExclusive(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{PollInterval: time.Millisecond}}
	a := f.Open(t)
	first := a.Exclusive()
	if first == 0 {
		t.Fatal("a lone driver is not exclusive")
	}
	b := f.Open(t)
	if a.Exclusive() != 0 || b.Exclusive() != 0 {
		t.Fatal("two drivers are exclusive")
	}
	b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	hints := a.Hints(ctx)
	for deadline := time.Now().Add(2 * time.Minute); a.Exclusive() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a driver that is alone again does not notice")
		}
	}
	if a.Exclusive() == first {
		t.Fatal("the number did not change")
	}
	cancel()
	for range hints {
	}
}

func TestErrorsSurviveWrapping(t *testing.T) {
	key := sqlstore.Key{Resource: "pods", Name: "a"}
	for _, err := range []error{&sqlstore.NotFoundError{Key: key}, &sqlstore.CompactedError{Revision: 1, Floor: 2}, sqlstore.ErrFull, sqlstore.ErrUncertain} {
		twice := fmt.Errorf("second: %w", fmt.Errorf("first: %w", err))
		if !errors.Is(twice, err) {
			t.Errorf("%v is lost in %v", err, twice)
		}
	}
}

func TestFileMode(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	mustApply(t, d, put("a", "a"))
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(f.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", info.Name(), info.Mode())
		}
	}
}

// The file shrinks again when much of it has become free.
func TestReclaim(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{PollInterval: time.Millisecond}}
	d := f.Open(t)
	value := strings.Repeat("x", 100_000)
	k := sqlstore.Key{Resource: "pods", Namespace: "default", Name: "a"}
	mustApply(t, d, put("a", value))
	for revision := int64(1); revision < 400; revision++ {
		mustApply(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: k, Expect: revision, Value: []byte(value)}}})
	}
	before, err := d.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hints := d.Hints(ctx)
	if n, err := d.Trim(t.Context(), 400, 1000); n != 399 || err != nil {
		t.Fatalf("Trim gave %d, %v", n, err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		after, err := d.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if after.Bytes < 18<<20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes before, %d after", before.Bytes, after.Bytes)
		}
	}
	cancel()
	for range hints {
	}
	storetest.CheckTable(t, d)
}
