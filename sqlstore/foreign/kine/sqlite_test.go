package kine_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/foreign/kine"
)

// schema is the table as kine documents it.
const schema = `CREATE TABLE IF NOT EXISTS kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, created INTEGER, deleted INTEGER,
 create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB);
CREATE INDEX IF NOT EXISTS kine_name_index ON kine (name);
CREATE INDEX IF NOT EXISTS kine_name_id_index ON kine (name, id);
CREATE UNIQUE INDEX IF NOT EXISTS kine_name_prev_revision_uindex ON kine (name, prev_revision);`

// create makes a database and leaves it open, with a write-ahead log.
func create(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	run(t, db, schema)
	return db
}

func run(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

const insert = `INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value) VALUES (?, ?, ?, ?, ?, ?, ?)`

func read(t *testing.T, path string) (list []string, revision int64) {
	t.Helper()
	s, err := kine.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	return contents(t, s), s.Revision()
}

// fill writes what a server does: creates, changes, deletes, a lease, a gap.
func fill(t *testing.T, db *sql.DB) {
	for _, r := range [][]any{
		{"compact_rev_key", 1, 0, 0, 0, 0, nil}, // 1
		{"/registry/pods/a/x", 1, 0, 0, 0, 0, []byte("one")},
		{"/registry/pods/a/y", 1, 0, 0, 0, 0, []byte("gone")},
		{"/registry/pods/a/x", 0, 0, 2, 2, 0, []byte("two")}, // 4
		{"/registry/pods/a/y", 0, 1, 3, 3, 0, []byte("gone")},
		{"/registry/events/a/e", 1, 0, 0, 0, 3600, []byte("event")},
		{"gap-7", 0, 1, 0, 0, 0, nil},
		{"/registry/pods/a-b/x", 1, 0, 0, 0, 0, []byte("b")}, // 8
		{"/registry/pods/a/y", 1, 0, 0, 5, 0, []byte("again")},
		{"/registry/odd/\x01\u00ff", 1, 0, 0, 0, 0, []byte("")},
	} {
		run(t, db, insert, r...)
	}
}

var filled = []string{
	"/registry/events/a/e=event 6/6 1h0m0s", "/registry/odd/\x01\u00ff= 10/10", "/registry/pods/a-b/x=b 8/8",
	"/registry/pods/a/x=two 2/4", "/registry/pods/a/y=again 9/9", "compact_rev_key= 1/1",
}

// TestEntries: the newest row of each name, deleted ones left out, in the order of the
// names; of a file in use, of one left with its log, and of a closed one.
func TestEntries(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.db")
	db := create(t, path)
	fill(t, db)
	check := func(what, path string) {
		t.Helper()
		before := files(t, filepath.Dir(path))
		if list, revision := read(t, path); !slices.Equal(list, filled) || revision != 10 {
			t.Errorf("%s: at %d %q", what, revision, list)
		}
		if after := files(t, filepath.Dir(path)); !slices.Equal(before, after) {
			t.Errorf("%s: beside it were %q, and now %q", what, before, after)
		}
	}
	check("in use", path)
	left := filepath.Join(t.TempDir(), "left ?&#.db")
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + end)
		if err == nil {
			err = os.WriteFile(left+end, data, 0o400)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check("left beside its log", left)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	check("closed", path)
}

// files lists a folder with sizes and times.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, "-shm") {
			info, e := d.Info()
			list, err = append(list, fmt.Sprint(path, info.Size(), info.ModTime())), e
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestRollbackJournal: a file without a write-ahead log is read as it was committed, also while
// another process writes; one with an incomplete last transaction is read without it.
func TestRollbackJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(delete)&_pragma=cache_size(1)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	run(t, db, schema)
	fill(t, db)
	if list, revision := read(t, path); !slices.Equal(list, filled) || revision != 10 {
		t.Errorf("nobody writes: at %d %q", revision, list)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 { // far more than the pages that it keeps in memory
		if _, err := tx.Exec(insert, fmt.Sprintf("/registry/pods/a/never-%d", i), 1, 0, 0, 0, 0, make([]byte, 8192)); err != nil {
			t.Fatal(err)
		}
	}
	cut := filepath.Join(t.TempDir(), "state.db")
	for _, end := range []string{"", "-journal"} {
		data, err := os.ReadFile(path + end)
		if err == nil {
			err = os.WriteFile(cut+end, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	before := files(t, filepath.Dir(cut))
	s, err := kine.OpenSQLite(t.Context(), cut)
	if err == nil {
		_ = s.Close()
		t.Error("a transaction that was cut off is read")
	} else if !strings.Contains(err.Error(), cut) {
		t.Error(err)
	}
	if after := files(t, filepath.Dir(cut)); !slices.Equal(before, after) {
		t.Errorf("beside it were %q, and now %q", before, after)
	}
}

// TestOneState: rows that are written after a source was opened are not read.
func TestOneState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := create(t, path)
	defer db.Close()
	fill(t, db)
	s, err := kine.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	for _, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 1 {
			run(t, db, insert, "/registry/zz/late", 1, 0, 0, 0, 0, []byte("late"))
		}
	}
	if n != len(filled) || s.Revision() != 10 {
		t.Errorf("%d entries at %d", n, s.Revision())
	}
}

// TestFilledForWritersAndReaders: a filled file has a write-ahead log however it is opened, so that
// readers do not block writers.
func TestFilledForWritersAndReaders(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.db")
	if err := os.WriteFile(path+".gathered-wal", []byte("left by one that was killed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sink(t, "sqlite:"+path).Commit(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "state.db" {
		t.Errorf("there are %v, %v", left, err)
	}
	plain, err := sql.Open("sqlite", "file:"+path) // without a word of a log or of waiting
	db := opened(t, plain, err)
	var mode string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("its journal mode is %q, %v", mode, err)
	}
	reading, err := db.Query("SELECT name FROM kine")
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if !reading.Next() {
		t.Fatal("it has no rows")
	}
	run(t, db, insert, "/registry/pods/a/meanwhile", 1, 0, 0, 0, 0, []byte("n"))
	// A log that is there belongs to another file of the name, and would be taken for its own.
	other := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(other+"-wal", []byte("of another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := kine.CreateSQLite(t.Context(), other); err == nil || !strings.Contains(err.Error(), other+"-wal exists") {
		t.Errorf("filled beside another's log: %v", errors.Join(err, abort(s)))
	}
}
