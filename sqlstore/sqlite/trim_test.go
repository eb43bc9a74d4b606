package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestTrimInPieces: one call of Trim deletes as many rows as it is to, in transactions that are short whatever the size of the rows.
func TestTrimInPieces(t *testing.T) {
	for name, c := range map[string]struct{ size, least, most int }{
		"small": {1 << 10, 1, 1},
		"large": {700 << 10, 15, 30}, // three rows in each
	} {
		t.Run(name, func(t *testing.T) {
			f := file{path: filepath.Join(t.TempDir(), "test.db"), cfg: sqlite.Config{Unsynced: true}}
			d := f.Open(t).(*sqlite.Driver)
			const rows = 60
			mustApply(t, d, put("a", `"0"`))
			for i := int64(1); i <= rows; i++ {
				value := fmt.Sprintf(`"%d %s"`, i, strings.Repeat("x", c.size))
				mustApply(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: object, Expect: i, Value: []byte(value)}}})
			}
			commits := 0
			d.OnCommit(func() { commits++ })
			n, err := d.Trim(t.Context(), rows, 50)
			if n != 50 || err != nil || commits < c.least || commits > c.most {
				t.Fatalf("%d rows went in %d transactions, %v", n, commits, err)
			}
			if b, err := d.Bounds(t.Context()); b.Floor != rows || err != nil {
				t.Errorf("%+v, %v", b, err)
			}
			if n, err := d.Trim(t.Context(), rows, 50); n != rows-1-50 || err != nil {
				t.Errorf("%d rows were left, %v", n, err)
			}
			var gone *sqlstore.CompactedError
			if _, err := d.Changes(t.Context(), rows-1, 1, false); !errors.As(err, &gone) {
				t.Errorf("the log below the floor gave %v", err)
			}
			if row, err := d.Read(t.Context(), object, 0); err != nil || row.Revision != rows+1 || row.Damaged != nil {
				t.Errorf("%+v, %v", row.Revision, err)
			}
		})
	}
}
