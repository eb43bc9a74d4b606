//go:build unix

package cluster

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// TestTimeOfRows: the time of a row is not before it was written, also if the table takes long to open.
func TestTimeOfRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	exec := func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE kv_meta (key TEXT, value INTEGER)`)
	exec(`INSERT INTO kv_meta VALUES ('revision', 0), ('floor', 0)`)
	exec(`CREATE TABLE kv (revision INTEGER, resource TEXT, namespace TEXT, name TEXT, created_revision INTEGER, superseded_revision INTEGER, deleted INTEGER, value BLOB)`)
	var clock, written time.Duration
	opening := false
	table, err := NewTable(t.Context(), &Cluster{url: "sqlite:" + path}, func(history.Key) bool { return false }, func() time.Duration {
		clock++
		at := clock
		if opening {
			opening = false
			exec(`INSERT INTO kv VALUES (1, 'events', 'green', 'e', 1, NULL, 1, x'')`)
			exec(`UPDATE kv_meta SET value = 1 WHERE key = 'revision'`)
			clock += 100
			written = clock
		}
		return at
	})
	if err != nil {
		t.Fatal(err)
	}
	opening = true
	if err := table.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows := table.current.Rows; len(rows) != 1 || rows[0].At < written {
		t.Errorf("a row that was written at %d: %+v", written, rows)
	}
}
