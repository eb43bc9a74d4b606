package kine_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/kine"
)

// TestTooLong: a value beyond the bound is not read, and its key is named.
func TestTooLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := create(t, path)
	defer db.Close()
	run(t, db, `INSERT INTO kine (name, created, deleted, create_revision, prev_revision, lease, value) VALUES ('/registry/secrets/a/huge', 1, 0, 0, 0, 0, zeroblob(?))`, 100<<20)
	s, err := kine.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for e, err := range s.Entries(t.Context()) {
		if err != nil || e.Value != nil || e.Unread == nil || !strings.Contains(e.Unread.Error(), "/registry/secrets/a/huge") || !strings.Contains(e.Unread.Error(), fmt.Sprint(foreign.MaxValue)) {
			t.Errorf("%d bytes, %v, %v", len(e.Value), e.Unread, err)
		}
	}
}

// TestHostileValues: values whose length is not visible in their text are not read either;
// a name that is too long is shown in part, and one beyond all measure ends the reading.
func TestHostileValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	db := create(t, path)
	defer db.Close()
	for _, r := range [][2]any{
		{"/registry/a/zero", "'x' || char(0) || CAST(zeroblob(40 << 20) AS TEXT)"},
		{"/registry/b/letters", "CAST(replace(hex(zeroblob(6 << 20)), '0', '\U0001F600') AS TEXT)"}, // 12 Mi letters of 4 bytes
		{"/registry/c/number", "42"},
	} {
		run(t, db, fmt.Sprintf("INSERT INTO kine (name, deleted, create_revision, value) VALUES (?, 0, 0, %s)", r[1]), r[0])
	}
	run(t, db, "INSERT INTO kine (name, deleted, create_revision, value) VALUES ('/registry/d/' || hex(zeroblob(1 << 20)), 0, 0, 'v')")
	s, err := kine.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []string
	for e, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%.20s %d %t", e.Key, len(e.Value), e.Unread != nil))
		if e.Unread != nil && len(e.Unread.Error()) > 1000 {
			t.Errorf("%d bytes of message", len(e.Unread.Error()))
		}
	}
	if want := []string{"/registry/a/zero 0 true", "/registry/b/letters 0 true", "/registry/c/number 2 false", "/registry/d/00000000 0 true"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	run(t, db, "INSERT INTO kine (name, deleted, create_revision, value) VALUES ('/registry/e/' || CAST(zeroblob(40 << 20) AS TEXT), 0, 0, 'v')")
	later, err := kine.OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	for _, last := range later.Entries(t.Context()) {
		err = last
	}
	if err == nil || !strings.Contains(err.Error(), "too big") || !strings.Contains(err.Error(), path) {
		t.Errorf("a name of 40 MiB: %v", err)
	}
}

// TestNoTable: a view or another object in place of kine's table, or one in which each row costs a
// scan of all, is not read.
func TestNoTable(t *testing.T) {
	const columns = "name TEXT, deleted INTEGER, create_revision INTEGER, lease INTEGER, value BLOB"
	for name, schema := range map[string]string{
		"a view":            "CREATE TABLE other (id INTEGER PRIMARY KEY, " + columns + "); CREATE VIEW kine AS SELECT * FROM other",
		"a virtual table":   "CREATE VIRTUAL TABLE kine USING fts5(id, name, deleted, create_revision, lease, value)",
		"computed":          "CREATE TABLE kine (id INTEGER PRIMARY KEY, name TEXT, deleted INTEGER, create_revision INTEGER, lease INTEGER, value BLOB AS (zeroblob(1 << 29)))",
		"no key":            "CREATE TABLE kine (id INTEGER, " + columns + ")",
		"another key":       "CREATE TABLE kine (id INTEGER, name TEXT PRIMARY KEY, deleted INTEGER, create_revision INTEGER, lease INTEGER, value BLOB)",
		"a key of two":      "CREATE TABLE kine (id INTEGER, " + columns + ", PRIMARY KEY (id, name))",
		"a table of theirs": "CREATE TABLE kine_of_others (id INTEGER PRIMARY KEY, " + columns + ")",
	} {
		path := filepath.Join(t.TempDir(), "state.db")
		db, err := sql.Open("sqlite", "file:"+path)
		if err != nil {
			t.Fatal(err)
		}
		run(t, db, schema)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err := kine.OpenSQLite(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not one of kine") {
			if err == nil {
				s.Close()
			}
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefused: the error for a file that is no database of kine describes the file.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other, empty := filepath.Join(dir, "other.db"), filepath.Join(dir, "empty.db")
	db := create(t, other)
	run(t, db, "DROP TABLE kine")
	run(t, db, "CREATE TABLE kine (id INTEGER, label TEXT)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := create(t, empty).Close(); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "is not a file",
		write("text", "hello"):     "is not a SQLite database",
		write("void", ""):          "is not a SQLite database",
		write("broken", "SQLite format 3\x00"+strings.Repeat("\xff\x00", 500)): "broken",
		other: "not one of kine",
		empty: "has no rows",
	} {
		s, err := kine.OpenSQLite(context.Background(), path)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, text)
		}
	}
}
