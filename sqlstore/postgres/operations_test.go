package postgres_test

import (
	"context"
	"path/filepath"
	"testing"

	"database/sql"

	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func fresh(t testing.TB) storetest.Database { return newDatabase(t, postgres.Config{}) }

func TestOperations(t *testing.T) { storetest.Operations(t, fresh) }

func TestBackups(t *testing.T) { storetest.Backups(t, fresh, fresh) }

// Growing out of one machine, and back.
func TestFromSQLite(t *testing.T) { storetest.Backups(t, freshFile, fresh) }

func TestToSQLite(t *testing.T) { storetest.Backups(t, fresh, freshFile) }

func TestDocumentedQueries(t *testing.T) {
	d := newDatabase(t, postgres.Config{})
	drv := d.Open(t)
	connector, err := stdlib.GetDefaultDriver().(*stdlib.Driver).OpenConnector(d.url)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	storetest.SQLDoc(t, "../../docs/sql.md", "postgres", drv, db)
}

// file is an SQLite database of the other end.
type file string

func freshFile(t testing.TB) storetest.Database { return file(filepath.Join(t.TempDir(), "test.db")) }

func (f file) Open(t testing.TB) sqlstore.Driver {
	t.Helper()
	d, err := sqlite.Open(context.Background(), string(f), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

func (f file) Exec(t testing.TB, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", string(f)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
