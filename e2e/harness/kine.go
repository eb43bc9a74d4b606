package harness

import (
	"database/sql"
	"testing"

	_ "modernc.org/sqlite" // in which k3s keeps its table
)

// Kine is a SQLite file with the table of kine, as kine documents it and k3s keeps it.
type Kine struct {
	t    testing.TB
	db   *sql.DB
	Path string
	last int64
}

// NewKine makes the file, which stays open, with a write-ahead log, until the test ends.
func NewKine(t testing.TB, path string) *Kine {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	k := &Kine{t: t, db: db, Path: path}
	t.Cleanup(func() { _ = db.Close() })
	k.exec(`CREATE TABLE kine (id INTEGER PRIMARY KEY AUTOINCREMENT, name INTEGER, created INTEGER, deleted INTEGER,
		create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value BLOB, old_value BLOB)`)
	k.exec(`CREATE INDEX kine_name_id_index ON kine (name, id)`)
	k.Put("compact_rev_key", nil)
	return k
}

func (k *Kine) exec(statement string, args ...any) {
	k.t.Helper()
	if _, err := k.db.Exec(statement, args...); err != nil {
		k.t.Fatal(err)
	}
}

// Put creates a key and returns its revision.
func (k *Kine) Put(key string, value []byte) int64 { k.t.Helper(); return k.PutFor(key, value, 0) }

// PutFor creates a key with a lease of some seconds; 0: forever.
func (k *Kine) PutFor(key string, value []byte, seconds int64) int64 {
	k.t.Helper()
	k.exec(`INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value) VALUES (?, 1, 0, 0, 0, ?, ?)`, key, seconds, value)
	k.last++
	return k.last
}

// Delete deletes a key that was created at a revision.
func (k *Kine) Delete(key string, created int64) {
	k.t.Helper()
	k.exec(`INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value) VALUES (?, 0, 1, ?, ?, 0, x'')`, key, created, created)
	k.last++
}

// Begin and Commit put the writes between them into one transaction.
func (k *Kine) Begin()  { k.t.Helper(); k.exec("BEGIN") }
func (k *Kine) Commit() { k.t.Helper(); k.exec("COMMIT") }
