package storetest

import (
	"fmt"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

func trim(t testing.TB, d sqlstore.Driver, to int64, limit, want int) {
	t.Helper()
	if n, err := d.Trim(t.Context(), to, limit); err != nil || n != want {
		t.Fatalf("Trim(%d, %d) deleted %d, %v; want %d", to, limit, n, err, want)
	}
}

var trimTests = map[string]func(*testing.T, Database){
	"from exactly the floor": func(t *testing.T, db Database) {
		d, m := db.Open(t), newModel()
		history(t, 60, d, m)
		for _, floor := range []int64{1, 20, 40, 60} {
			n, err := m.Trim(t.Context(), floor, 1000)
			if err != nil {
				t.Fatal(err)
			}
			want := changes(t, m, floor)
			trim(t, d, floor, 1000, n)
			wantBounds(t, d, floor, 60)
			got := changes(t, d, floor)
			if len(got) != len(want) {
				t.Fatalf("after the floor %d there are %d entries, want %d", floor, len(got), len(want))
			}
			for i := range got {
				wantChange(t, got[i], want[i], true)
			}
			req := sqlstore.ScanRequest{Limit: 7, Revision: floor}
			wantRows(t, scanAll(t, d, req), scanAll(t, m, req))
			below := &sqlstore.CompactedError{Revision: floor - 1, Floor: floor}
			_, err = d.Changes(t.Context(), floor-1, 10, false)
			wantErr(t, err, below)
			if floor == 1 {
				continue // revision 0 asks for the live objects
			}
			_, err = d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 1, Revision: floor - 1})
			wantErr(t, err, below)
			_, err = d.Read(t.Context(), historyKeys[0], floor-1)
			wantErr(t, err, below)
		}
	},
	"delete then compact": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "a"))
		must(t, d, remove(pod("a"), 1, "a"))
		trim(t, d, 2, 10, 2)
		wantBounds(t, d, 2, 2)
		wantRows(t, scanAll(t, d, sqlstore.ScanRequest{Limit: 10, Revision: 2}), nil)
		if log := changes(t, d, 2); len(log) != 0 {
			t.Fatalf("the log has %d entries after the floor", len(log))
		}
		s, err := d.Stats(t.Context())
		if err != nil || s.LiveRows+s.HistoryRows != 0 {
			t.Fatalf("rows are left: %+v, %v", s, err)
		}
		d.Close()
		d = db.Open(t)
		if r := must(t, d, create(pod("a"), "b")); r != 3 {
			t.Fatalf("the counter went back: revision %d", r)
		}
	},
	"live rows stay": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "a"))
		must(t, d, create(pod("b"), "b"))
		must(t, d, update(pod("b"), 2, "c"))
		trim(t, d, 3, 10, 1)
		if got := names(scanAll(t, d, sqlstore.ScanRequest{Limit: 10, Revision: 3})); got != "pods/default/a@1 pods/default/b@3 " {
			t.Fatalf("rows are %s", got)
		}
	},
	"in steps, with a restart between": func(t *testing.T, db Database) {
		d := db.Open(t)
		r := must(t, d, create(pod("a"), "0"))
		for i := range 10 {
			r = must(t, d, update(pod("a"), r, fmt.Sprint(i)))
		}
		trim(t, d, 10, 4, 4) // rows ended at 2..10: nine
		wantBounds(t, d, 10, 11)
		_, err := d.Changes(t.Context(), 9, 1, false)
		wantErr(t, err, &sqlstore.CompactedError{Revision: 9, Floor: 10})
		d.Close()
		d = db.Open(t)
		wantBounds(t, d, 10, 11)
		trim(t, d, 10, 4, 4)
		trim(t, d, 10, 4, 1)
		trim(t, d, 10, 4, 0)
		if log := changes(t, d, 10); len(log) != 1 || log[0].PrevRevision != 10 || string(log[0].PrevValue) != "8" {
			t.Fatalf("the log after the floor is %+v", log)
		}
	},
	"a floor is never lowered": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "a"))
		must(t, d, update(pod("a"), 1, "b"))
		trim(t, d, 2, 0, 0)
		trim(t, d, 1, 0, 0)
		wantBounds(t, d, 2, 2)
		trim(t, d, 0, 10, 1) // rows below the floor are deleted, whatever the argument
		trim(t, d, 99, 10, 0)
		wantBounds(t, d, 2, 2) // and it never passes the head
	},
}
