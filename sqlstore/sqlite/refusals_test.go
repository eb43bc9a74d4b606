package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestRefusals: whatever another program does to the file, the store reports with SQLite's text.
func TestRefusals(t *testing.T) {
	fresh := func(t testing.TB) storetest.Database {
		return file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{BusyTimeout: 5 * time.Millisecond}}
	}
	storetest.Refusals(t, fresh, []func(storetest.Database) storetest.Refusing{
		func(db storetest.Database) storetest.Refusing {
			return storetest.Refusing{Name: "BEGIN IMMEDIATE", Kind: sqlstore.KindBusy, Words: "database is locked", Begin: func(t *testing.T) func(*testing.T) {
				other, err := sql.Open("sqlite", db.(file).path+"?_pragma=busy_timeout(5000)")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { other.Close() })
				c, err := other.Conn(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
					t.Fatal(err)
				}
				return func(t *testing.T) {
					if _, err := c.ExecContext(t.Context(), "ROLLBACK"); err != nil {
						t.Fatal(err)
					}
				}
			}}
		},
		storetest.BySQL("renamed table", sqlstore.KindRefused, "no such table: kv", `ALTER TABLE kv RENAME TO kv_before`, `ALTER TABLE kv_before RENAME TO kv`),
		storetest.BySQL("trigger", sqlstore.KindRefused, "frozen by the administrator",
			`CREATE TRIGGER frozen BEFORE INSERT ON kv BEGIN SELECT RAISE(ABORT, 'frozen by the administrator'); END`, `DROP TRIGGER frozen`),
		func(db storetest.Database) storetest.Refusing {
			r := storetest.BySQL("renamed table, for reads", sqlstore.KindRefused, "no such table: kv", `ALTER TABLE kv RENAME TO kv_before`, `ALTER TABLE kv_before RENAME TO kv`)(db)
			r.Reads = true
			return r
		},
	})
}

// TestPatience: a command that deletes history waits for another process for longer than SQLite does, and until it is stopped.
func TestPatience(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{BusyTimeout: time.Millisecond, Patience: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	other, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := lock.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := d.Trim(stopped, 1, 1); !errors.Is(err, sqlstore.ErrBusy) || stopped.Err() == nil {
		t.Errorf("Trim that is stopped: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := d.Trim(t.Context(), 1, 1)
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("Trim while another process writes: %v", err)
	case <-time.After(50 * time.Millisecond): // many times what SQLite waits for
	}
	if _, err := lock.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Trim once the other process has written: %v", err)
	}
}

// TestResultCodes: of each result code of SQLite it is known whether the same may be tried again, and whose
// matter it is.
func TestResultCodes(t *testing.T) {
	var damaged *sqlstore.CorruptError
	for _, c := range []struct {
		kind  sqlstore.Kind
		codes []int
	}{
		{sqlstore.KindBusy, []int{sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_BUSY_TIMEOUT, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_LOCKED_SHAREDCACHE, sqlite3.SQLITE_SCHEMA}},
		{sqlstore.KindFull, []int{sqlite3.SQLITE_FULL}},
		{sqlstore.KindReadOnly, []int{sqlite3.SQLITE_READONLY, sqlite3.SQLITE_READONLY_DIRECTORY, sqlite3.SQLITE_READONLY_CANTLOCK, sqlite3.SQLITE_READONLY_CANTINIT, sqlite3.SQLITE_READONLY_RECOVERY, sqlite3.SQLITE_READONLY_ROLLBACK}},
		{sqlstore.KindGone, []int{sqlite3.SQLITE_READONLY_DBMOVED}},
		{sqlstore.KindDamaged, []int{sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CORRUPT_INDEX, sqlite3.SQLITE_CORRUPT_VTAB, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA}},
		{sqlstore.KindUnavailable, []int{
			sqlite3.SQLITE_IOERR, sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_FSTAT,
			sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_NOMEM, sqlite3.SQLITE_IOERR_ACCESS, sqlite3.SQLITE_IOERR_CLOSE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP, sqlite3.SQLITE_IOERR_MMAP,
			sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CANTOPEN_ISDIR, sqlite3.SQLITE_CANTOPEN_FULLPATH, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_ABORT, sqlite3.SQLITE_ABORT_ROLLBACK, sqlite3.SQLITE_PROTOCOL,
		}},
		{sqlstore.KindRefused, []int{
			sqlite3.SQLITE_ERROR, sqlite3.SQLITE_INTERNAL, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_NOTFOUND, sqlite3.SQLITE_EMPTY,
			sqlite3.SQLITE_CONSTRAINT_TRIGGER, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID, sqlite3.SQLITE_CONSTRAINT_UNIQUE,
		}},
		{sqlstore.KindRejected, []int{sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_CONSTRAINT_CHECK, sqlite3.SQLITE_CONSTRAINT_NOTNULL, sqlite3.SQLITE_CONSTRAINT_DATATYPE, sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY, sqlite3.SQLITE_MISMATCH}},
		{"", []int{sqlite3.SQLITE_TOOBIG}},
	} {
		for _, code := range c.codes {
			err := sqlite.ErrorOf(code)
			if kind := sqlstore.KindOf(err); kind != c.kind {
				t.Errorf("code %d (%v) is %q, want %q", code, err, kind, c.kind)
			}
			if errors.As(err, &damaged) != (c.kind == sqlstore.KindDamaged) || errors.Is(err, sqlstore.ErrTooLarge) != (code == sqlite3.SQLITE_TOOBIG) {
				t.Errorf("code %d is %v", code, err)
			}
		}
	}
}
