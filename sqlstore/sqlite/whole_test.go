package sqlite_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// What was replaced is gone from the table: revisions lie far apart in one place and side by
// side in another. Each row is handed out once, by several readers, wherever it lies.
func TestReadAllOfUnevenRevisions(t *testing.T) {
	d := file{path: t.TempDir() + "/test.db"}.Open(t).(*sqlite.Driver)
	var want []int64
	for i := range int64(40) { // few, then many, then few again
		want = append(want, 1+i*1_000_000_007)
	}
	for i := range int64(10_000) {
		want = append(want, 50_000_000_000+i)
	}
	want = append(want, 1<<50)
	rows := func(yield func(sqlstore.Row, error) bool) {
		for _, revision := range want {
			key := sqlstore.Key{Resource: "pods", Namespace: "n", Name: fmt.Sprint("p", revision)}
			if !yield(sqlstore.Row{Key: key, Revision: revision, Created: revision, Value: []byte("{}")}, nil) {
				return
			}
		}
	}
	const head = 1 << 51
	if err := d.Load(t.Context(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: head, Head: head}, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[int64]int{}
	err := d.ReadAll(t.Context(), head, func(rows []sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range rows {
			seen[r.Revision]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range want {
		if seen[revision] != 1 {
			t.Fatalf("revision %d was handed out %d times", revision, seen[revision])
		}
	}
	if len(seen) != len(want) {
		t.Fatalf("%d rows, want %d", len(seen), len(want))
	}
}
