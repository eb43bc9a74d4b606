package follow

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestDamagedRow: a row that is damaged when it is followed stays so in the restored database, whatever fields it has, and no other
// row is affected.
func TestDamagedRow(t *testing.T) {
	for name, damage := range map[string]string{
		"value":                 `value = '{"n":3}'`,
		"created later":         `created_revision = revision + 64`,
		"created is not number": `created_revision = 'x'`,
		"written far":           `written_at = 9000000000000000000`,
		"no resource":           `resource = ''`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			d, err := sqlite.Open(t.Context(), path, sqlite.Config{Unsynced: true})
			if err != nil {
				t.Fatal(err)
			}
			o := newOriginOn(t, d)
			dir := o.filled(Config{}, 5)
			key := sqlstore.Key{Resource: "pods", Namespace: "ns", Name: "z"}
			if _, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key, Value: []byte(`{"n":1}`)}}}}, time.Now()); err != nil {
				t.Fatal(err)
			}
			damaged := o.head()
			db, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(`UPDATE kv SET `+damage+` WHERE revision = ?`, damaged); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second one finds the row at the end of the log
				r := o.follow(Config{Dir: dir})
				r.until("the head", func(s Stats) bool { return s.Revision == damaged && !s.Synced.IsZero() })
				if s := r.Stats(); s.Gaps != 0 {
					t.Fatalf("%+v", s)
				}
				r.end()
			}
			again, got, err := restored(t, dir, Target{})
			if err != nil || got.Revision != damaged {
				t.Fatalf("restored %+v, %v", got, err)
			}
			rows, err := again.Scan(t.Context(), sqlstore.ScanRequest{Limit: 100})
			if err != nil || len(rows) < 10 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			for _, row := range rows {
				if (row.Damaged != nil) != (row.Revision == damaged) {
					t.Errorf("%s at %d: %v", row.Key, row.Revision, row.Damaged)
				}
			}
		})
	}
}
