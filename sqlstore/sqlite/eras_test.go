package sqlite_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// shape lists the schema of a file: columns, and the text of indexes, views and triggers.
func (f file) shape(t *testing.T) (list []string) {
	t.Helper()
	db, err := sql.Open("sqlite", f.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_master WHERE type <> 'table' AND tbl_name <> 'schema_migrations'
UNION ALL SELECT m.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || coalesce(c.dflt_value, '') || ' ' || c.pk FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'
UNION ALL SELECT version || '' FROM schema_migrations ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		list = append(list, line)
	}
	return list
}

// TestEras opens databases of earlier builds, beginning with the first one that served.
func TestEras(t *testing.T) {
	dir := t.TempDir()
	today := file{path: filepath.Join(dir, "today.db")}
	today.Open(t).Close()
	want := today.shape(t)
	for _, era := range []struct {
		name string
		rows int
		head int64
	}{{"first", 19, 35}, {"schema5", 196, 226}, {"schema9", 202, 278}, {"many9", 254, 287}} {
		t.Run(era.name, func(t *testing.T) {
			f := file{path: filepath.Join(dir, fmt.Sprintf("%s.db", era.name))}
			if err := os.WriteFile(f.path, storetest.EarlierBuildFile(t, "../../e2e/testdata/eras/"+era.name+".db.gz"), 0o600); err != nil {
				t.Fatal(err)
			}
			storetest.EarlierBuild(t, f.Open(t), era.rows, era.head)
			if diff := cmp.Diff(want, f.shape(t)); diff != "" {
				t.Errorf("the schema differs from that of a new file (-new +migrated):\n%s", diff)
			}
		})
	}
}

// TestMigratesBesideWriters: servers of the builds before and after a migration use a file at the same time.
func TestMigratesBesideWriters(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	storetest.Migrates(t, f,
		func() { f.Exec(t, `DROP INDEX kv_past; UPDATE schema_migrations SET version = 11`) },
		func() {
			f.Exec(t, `CREATE TABLE kv_later (n INTEGER); ALTER TABLE kv ADD COLUMN later INTEGER; UPDATE schema_migrations SET version = 99`)
		})
}

// TestOpensBesideAWriter opens a database of the present schema while another process holds the lock of writers.
func TestOpensBesideAWriter(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{BusyTimeout: 5 * time.Millisecond}}
	f.Open(t)
	other, err := sql.Open("sqlite", f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Close()
	if _, err := tx.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	f.Open(t)
}
