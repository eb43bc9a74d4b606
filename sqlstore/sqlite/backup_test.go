package sqlite_test

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestBackupOfDamagedRow: a backup of a database with a damaged row can be restored, whatever fields the row has. The row stays
// damaged, and the others are as they were.
func TestBackupOfDamagedRow(t *testing.T) {
	statements := maps.Clone(damages)
	for name, change := range map[string]string{
		"created later": "created_revision = 66", "created is not a number": "created_revision = 'x'",
		"written far": "written_at = 9000000000000000000", "expires far": "expires_at = 9000000000000000000", "no name": "name = ''",
	} {
		statements[name] = "UPDATE kv SET " + change + " WHERE revision = 2"
	}
	for name, statement := range statements {
		for _, history := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", with history: ", history), func(t *testing.T) {
				f := file{path: filepath.Join(t.TempDir(), "test.db")}
				d := f.Open(t).(*sqlite.Driver)
				for _, k := range []string{"a", "b"} {
					write(t, d, sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "pods", Namespace: "n", Name: k}, Value: []byte(`{"n":1}`)})
				}
				f.Exec(t, statement)
				var backup bytes.Buffer
				if _, _, err := archive.Backup(t.Context(), d, &backup, archive.Options{History: history}); err != nil {
					t.Fatal(err)
				}
				again := file{path: filepath.Join(t.TempDir(), "again.db")}.Open(t)
				if _, _, err := archive.Restore(t.Context(), again, &backup, nil); err != nil {
					t.Fatal(err)
				}
				rows, err := again.Scan(t.Context(), sqlstore.ScanRequest{Limit: 10})
				if err != nil || len(rows) != 2 {
					t.Fatalf("%d rows, %v", len(rows), err)
				}
				for _, row := range rows {
					if (row.Damaged != nil) != (row.Revision == 2) {
						t.Errorf("%s at %d: %v", row.Key, row.Revision, row.Damaged)
					}
				}
			})
		}
	}
}
