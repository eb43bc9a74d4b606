package storetest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// LargeRevisions fills a database up to the largest revision that it may begin with, and uses and packs the ones behind it. It
// refuses to begin with a larger one, or to leave out so many that later ones have no room.
func LargeRevisions(t *testing.T, db Database) {
	d := db.Open(t)
	load := func(head int64) error {
		row := sqlstore.Row{Key: pod("a"), Revision: head, Created: head, Value: []byte(`{"n":0}`), WrittenAt: start}
		return d.Load(t.Context(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: head, Head: head}, Rows: func(yield func(sqlstore.Row, error) bool) { yield(row, nil) }})
	}
	const first = int64(sqlstore.MaxRevision)
	for _, head := range []int64{first + 1, math.MaxInt64, -1} {
		if err := load(head); err == nil || errors.Is(err, sqlstore.ErrNotEmpty) {
			t.Fatalf("loading up to revision %d: %v", head, err)
		}
	}
	wantBounds(t, d, 0, 0)
	if err := load(first); err != nil {
		t.Fatal(err)
	}
	for _, count := range []int64{1, math.MaxInt64} {
		if _, to, err := d.SkipRevisions(t.Context(), count); err == nil {
			t.Fatalf("%d revisions are left out, up to %d", count, to)
		}
	}
	wantBounds(t, d, first, first)
	const writes = 5
	for n := range int64(writes) {
		if r := must(t, d, update(pod("a"), first+n, fmt.Sprintf(`{"n":%d}`, n+1))); r != first+n+1 {
			t.Fatalf("a write got revision %d, want %d", r, first+n+1)
		}
	}
	same := func() {
		t.Helper()
		for n := range int64(writes + 1) {
			if row, err := d.Read(t.Context(), pod("a"), first+n); err != nil || row.Revision != first+n || string(row.Value) != fmt.Sprintf(`{"n":%d}`, n) {
				t.Errorf("at revision %d there is %+v (%s), %v", first+n, row, row.Value, err)
			}
			if rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Resource: "pods", Limit: 10, Revision: first + n}); err != nil || len(rows) != 1 || rows[0].Revision != first+n {
				t.Errorf("at revision %d a page has %+v, %v", first+n, rows, err)
			}
		}
		if rows, err := d.Past(t.Context(), pod("a"), 0, 100); err != nil || len(rows) != writes+1 {
			t.Errorf("the past has %d states, %v", len(rows), err)
		}
	}
	same()
	rows := 0
	if err := d.ReadAll(t.Context(), first+writes, func(piece []sqlstore.Row) error { rows += len(piece); return nil }); err != nil || rows != 1 {
		t.Errorf("all rows are %d, %v", rows, err)
	}
	if changes, err := d.Changes(t.Context(), first, 100, true); err != nil || len(changes) != writes || changes[0].PrevRevision != first {
		t.Errorf("the log has %+v, %v", changes, err)
	}
	retain(t, sqlstore.Floors{Log: first + 3, Past: map[string]int64{"": first}}, d)
	packAll(t, d, 10)
	same()
	if report, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil }); err != nil || report.Count != 0 {
		t.Errorf("verify reports %+v, %v", report, err)
	}
}
