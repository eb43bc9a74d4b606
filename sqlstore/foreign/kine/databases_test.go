package kine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/kine"
	"github.com/rowlock/rowlock/sqlstore/foreign/kine/mariadbtest"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// database is an empty database of one kind, and how tests write to it.
type database struct {
	name   string
	schema []string // as kine documents it, older forms too
	insert string
	create func(t *testing.T, name string) (db *sql.DB, url string)
}

// databases starts a server of each kind, for one test.
func databases(t *testing.T) []database {
	needs.PostgreSQL(t)
	needs.MariaDB(t)
	ctx := context.Background()
	pg, err := pgtest.Start(ctx, pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pg.Stop() })
	maria, err := mariadbtest.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := maria.Stop(); err != nil {
			t.Error(err)
		}
	})
	return []database{
		{"PostgreSQL", []string{`CREATE TABLE kine (id SERIAL PRIMARY KEY, name VARCHAR(630), created INTEGER, deleted INTEGER, create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value bytea, old_value bytea)`},
			`INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			func(t *testing.T, name string) (*sql.DB, string) {
				url, err := pg.CreateDB(ctx, name)
				if err != nil {
					t.Fatal(err)
				}
				db, err := sql.Open("pgx", url)
				return opened(t, db, err), url
			}},
		{"MariaDB", []string{`CREATE TABLE kine (id INTEGER AUTO_INCREMENT, name VARCHAR(630) CHARACTER SET ascii, created INTEGER, deleted INTEGER, create_revision INTEGER, prev_revision INTEGER, lease INTEGER, value MEDIUMBLOB, old_value MEDIUMBLOB, PRIMARY KEY (id))`, `CREATE INDEX kine_name_id_index ON kine (name, id)`},
			insert,
			func(t *testing.T, name string) (*sql.DB, string) {
				db, url, err := maria.Create(ctx, name)
				return opened(t, db, err), url
			}},
		{"SQLite", []string{schema}, insert, func(t *testing.T, name string) (*sql.DB, string) {
			path := filepath.Join(t.TempDir(), name+".db")
			db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)")
			return opened(t, db, err), "sqlite:" + path
		}},
	}
}

func opened(t *testing.T, db *sql.DB, err error) *sql.DB {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// contents returns the entries of a source, read twice.
func contents(t *testing.T, s foreign.Source) (list []string) {
	t.Helper()
	for range 2 {
		list = nil
		for e, err := range s.Entries(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			left := ""
			if !e.ExpiresAt.IsZero() {
				left = fmt.Sprint(" ", time.Until(e.ExpiresAt).Round(time.Minute))
			}
			list = append(list, fmt.Sprintf("%s=%s %d/%d%s", e.Key, e.Value, e.CreateRevision, e.ModRevision, left))
		}
	}
	return list
}

// TestDatabases reads and fills every kind of database.
func TestDatabases(t *testing.T) {
	for _, d := range databases(t) {
		t.Run(d.name, func(t *testing.T) {
			t.Run("Read", d.read)
			t.Run("Fill", d.fill)
			t.Run("Abort", d.abort)
			t.Run("InUse", d.inUse)
			t.Run("Plans", d.plans)
			if d.name == "PostgreSQL" {
				t.Run("Flood", d.flood)
			}
		})
	}
}

// read has names that differ by case and lie around a slash: they are other keys, in
// bytewise order, whatever the database takes for the same.
func (d database) read(t *testing.T) {
	db, url := d.create(t, "reading")
	if s, err := kine.Open(t.Context(), url); err == nil {
		s.Close()
		t.Error("a database without the table was opened")
	}
	for _, statement := range d.schema {
		run(t, db, statement)
	}
	for _, r := range [][]any{
		{"compact_rev_key", 1, 0, 0, 0, 0, []byte("")},
		{"/registry/pods/a/x", 1, 0, 0, 0, 0, []byte("one")},
		{"/registry/pods/a/gone", 1, 0, 0, 0, 0, []byte("gone")},
		{"/registry/pods/a/x", 0, 0, 2, 2, 0, []byte("two")}, // 4
		{"/registry/pods/a/gone", 0, 1, 3, 3, 0, []byte("gone")},
		{"/registry/events/a/e", 1, 0, 0, 0, 3600, []byte("event")},
		{"/registry/pods/a-b/x", 1, 0, 0, 0, 0, []byte{0, 0xff, '\\'}},
		{"/registry/roles/a/View", 1, 0, 0, 0, 0, []byte("upper")}, // 8
		{"/registry/roles/a/view", 1, 0, 0, 0, 0, []byte("lower")},
	} {
		run(t, db, d.insert, r...)
	}
	s, err := kine.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run(t, db, d.insert, "/registry/pods/a/late", 1, 0, 0, 0, 0, []byte("late"))
	want := []string{
		"/registry/events/a/e=event 6/6 1h0m0s", "/registry/pods/a-b/x=\x00\xff\\ 7/7", "/registry/pods/a/x=two 2/4",
		"/registry/roles/a/View=upper 8/8", "/registry/roles/a/view=lower 9/9", "compact_rev_key= 1/1",
	}
	got := contents(t, s)
	if !slices.Equal(got, want) || s.Revision() != 9 {
		t.Errorf("at %d %q", s.Revision(), got)
	}
}

// put are entries out of order, as rows of this store come.
var put = []foreign.Entry{
	{Key: "/registry/pods/a/x", Value: []byte("two"), CreateRevision: 2, ModRevision: 7},
	{Key: "/registry/pods/a-b/x", Value: []byte{0, 0xff, '\\'}, CreateRevision: 3, ModRevision: 3},
	{Key: "/registry/roles/a/View", Value: []byte("upper"), CreateRevision: 8, ModRevision: 8},
	{Key: "/registry/roles/a/view", Value: []byte("lower"), CreateRevision: 9, ModRevision: 9},
	{Key: "/registry/events/a/e", Value: []byte("event"), CreateRevision: 11, ModRevision: 11},
}

func sink(t *testing.T, url string) *kine.Sink {
	t.Helper()
	s, err := kine.Create(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	entries := slices.Clone(put)
	entries[4].ExpiresAt = time.Now().Add(time.Hour)
	for _, e := range entries {
		if err := s.Put(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (d database) fill(t *testing.T) {
	for _, c := range []struct {
		name     string
		revision int64
		head     int64
	}{{"above", 40, 40}, {"equal", 11, 12}} {
		db, url := d.create(t, "filled_"+c.name)
		if err := sink(t, url).Commit(t.Context(), c.revision); err != nil {
			t.Fatal(err)
		}
		s, err := kine.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"/registry/events/a/e=event 11/11 1h0m0s", "/registry/pods/a-b/x=\x00\xff\\ 3/3", "/registry/pods/a/x=two 2/7",
			"/registry/roles/a/View=upper 8/8", "/registry/roles/a/view=lower 9/9",
			fmt.Sprintf("compact_rev_key= %d/%d", c.head, c.head),
		}
		if got := contents(t, s); !slices.Equal(got, want) || s.Revision() != c.head {
			t.Errorf("at %d %q", s.Revision(), got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		// kine goes on above, and reads here up to where history is compacted.
		run(t, db, d.insert, "/registry/pods/a/next", 1, 0, 0, 0, 0, []byte("n"))
		var next, compacted int64
		if err := db.QueryRow("SELECT MAX(id), MAX(CASE WHEN name = 'compact_rev_key' THEN prev_revision END) FROM kine").Scan(&next, &compacted); err != nil || next != c.head+1 || compacted != c.revision {
			t.Errorf("the next row is %d, compacted up to %d, %v", next, compacted, err)
		}
		// The table is used now.
		if s, err := kine.Create(t.Context(), url); err == nil || !strings.Contains(err.Error(), "empty") && !strings.Contains(err.Error(), "exists") {
			t.Errorf("filled again: %v", errors.Join(err, abort(s)))
		}
	}
}

func abort(s *kine.Sink) error {
	if s == nil {
		return nil
	}
	return s.Abort()
}

func (d database) abort(t *testing.T) {
	_, url := d.create(t, "aborted")
	s := sink(t, url)
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok { // with Secrets in it
		if info, err := os.Stat(path + ".gathered"); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file that is filled: %v, %v", info, err)
		}
	}
	if err := s.Put(t.Context(), foreign.Entry{Key: "/bad", CreateRevision: 3, ModRevision: 2}); err == nil {
		t.Error("a key was taken that was created after it was written")
	}
	if d.name == "MariaDB" {
		for _, key := range []string{"/registry/" + strings.Repeat("k", 630), "/registry/ä"} {
			var keyed *foreign.KeyError
			if err := s.Put(t.Context(), foreign.Entry{Key: key, CreateRevision: 2, ModRevision: 2}); !errors.As(err, &keyed) {
				t.Errorf("%q: %v", foreign.Shown(key), err)
			}
		}
	}
	if err := s.Abort(); err != nil {
		t.Fatal(err)
	}
	again := sink(t, url) // no table is left
	if err := again.Commit(t.Context(), 5); err == nil || !strings.Contains(err.Error(), "below 11") {
		t.Errorf("committed below a key: %v", err)
	}
	if err := again.Commit(t.Context(), 11); err == nil {
		t.Error("committed after it failed")
	}
	if s, err := kine.Open(t.Context(), url); err == nil {
		s.Close()
		t.Error("something was left")
	}
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

// inUse has a table as kine itself leaves it: with nothing in it, it is filled.
func (d database) inUse(t *testing.T) {
	db, url := d.create(t, "in_use")
	for _, statement := range d.schema {
		run(t, db, statement)
	}
	if d.name == "MariaDB" { // as kine makes it now
		run(t, db, "CREATE UNIQUE INDEX kine_name_prev_revision_uindex ON kine (name, prev_revision)")
	}
	if d.name == "SQLite" {
		if s, err := kine.Create(t.Context(), url); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("a file was overwritten: %v", errors.Join(err, abort(s)))
		}
		return
	}
	s, err := kine.Create(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abort()
	if err := s.Put(t.Context(), put[0]); err != nil {
		t.Fatal(err)
	}
	if d.name == "MariaDB" { // whose table takes names of other case for the same
		var keyed *foreign.KeyError
		if err := s.Put(t.Context(), foreign.Entry{Key: "/registry/pods/a/X", CreateRevision: 5, ModRevision: 5}); !errors.As(err, &keyed) || !strings.Contains(err.Error(), "case") {
			t.Error(err)
		}
	}
	if err := s.Commit(t.Context(), 11); err != nil {
		t.Fatal(err)
	}
}

// flood has a row that is longer than any should be: it ends the reading.
func (d database) flood(t *testing.T) {
	db, url := d.create(t, "flooding")
	run(t, db, "CREATE TABLE kine (id BIGSERIAL PRIMARY KEY, name text, deleted INTEGER, create_revision BIGINT, lease INTEGER, value bytea)")
	run(t, db, "INSERT INTO kine (name, deleted, create_revision, value) VALUES (repeat('k', 70 << 20), 0, 0, 'v')")
	s, err := kine.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for e, last := range s.Entries(t.Context()) {
		if err = last; err == nil {
			t.Errorf("a key of %d bytes is read", len(e.Key))
		}
	}
	if err == nil || !strings.Contains(err.Error(), "expected at most 68157440") || !strings.Contains(err.Error(), s.Describe()) {
		t.Errorf("a row of 70 MiB: %v", err)
	}
}

// TestURLs: invalid URLs are refused by an error that contains nothing of them.
func TestURLs(t *testing.T) {
	for _, url := range []string{"mysql://u:hunter2@tcp(h:1)", "mysql://u:hunter2@h:1", "mysql://u:hunter2@h:x/db", "postgres://u:hunter2@h:x/db", "nats://u:hunter2@h", "mysql://u:hunter2@127.0.0.1:1/db", "mysql://u:hunter2@tcp(127.0.0.1:1)/db", "postgres://u:hunter2@127.0.0.1:1/db"} {
		s, err := kine.Open(t.Context(), url)
		if err == nil {
			s.Close()
		}
		to, err2 := kine.Create(t.Context(), url)
		if err == nil || err2 == nil || strings.Contains(err.Error()+err2.Error(), "hunter2") {
			t.Errorf("%s: %v, %v", url, err, errors.Join(err2, abort(to)))
		}
	}
}

// TestNeverAnswers: a database that accepts connections and never answers blocks no caller whose
// context ends.
func TestNeverAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, url := range []string{"mysql://u@tcp(%s)/db", "postgres://u@%s/db"} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		s, err := kine.Open(ctx, fmt.Sprintf(url, l.Addr()))
		if err == nil {
			t.Error(s.Close())
		}
		to, err2 := kine.Create(ctx, fmt.Sprintf(url, l.Addr()))
		if err2 == nil {
			t.Error(to.Abort())
		}
		if took := time.Since(began); err == nil || err2 == nil || took > 10*time.Second {
			t.Errorf("%s: %v, %v after %s", url, err, err2, took)
		}
		cancel()
	}
}

// TestPasswordFromEnvironment: MYSQL_PWD is the password of a URL that has none.
func TestPasswordFromEnvironment(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"mysql://u@tcp(h:1)/db", "of the environment"}, {"mysql://u@h:1/db", "of the environment"}, {"mysql://u:own@tcp(h:1)/db", "own"},
	} {
		t.Setenv("MYSQL_PWD", "of the environment")
		if got, err := kine.MySQLPassword(c.url); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", c.url, got, err)
		}
	}
}
