package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/storetest"
)

func TestDocumentedQueries(t *testing.T) {
	f := file{path: filepath.Join(t.TempDir(), "test.db")}
	d := f.Open(t)
	db, err := sql.Open("sqlite", f.path+"?_pragma=query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	storetest.SQLDoc(t, "../../docs/sql.md", "sqlite", d, db)
}
