package storetest

import (
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

// pastTests are of what is kept of one key.
var pastTests = map[string]func(*testing.T, Database){
	"newest first": func(t *testing.T, db Database) {
		d := db.Open(t)
		k := pod("a")
		must(t, d, create(k, "1"))
		must(t, d, create(pod("b"), "2"))
		must(t, d, update(k, 1, "3"))
		must(t, d, remove(k, 3, "4"))
		must(t, d, create(k, "5"))
		rows := []sqlstore.Row{
			{Key: k, Revision: 5, Created: 5, Value: []byte("5"), WrittenAt: start},
			{Key: k, Revision: 4, Created: 1, Superseded: 4, Deleted: true, Value: []byte("4"), WrittenAt: start},
			{Key: k, Revision: 3, Created: 1, Superseded: 4, Value: []byte("3"), WrittenAt: start},
			{Key: k, Revision: 1, Created: 1, Superseded: 3, Value: []byte("1"), WrittenAt: start},
		}
		for before, want := range [][]sqlstore.Row{rows, nil, rows[3:], rows[3:], rows[2:], rows[1:], rows, rows} {
			for limit := 1; limit <= 5; limit++ {
				wantPast(t, d, k, int64(before), limit, want[:min(limit, len(want))])
			}
		}
		wantPast(t, d, pod("c"), 0, 5, nil)
	},
	"down to the floor": func(t *testing.T, db Database) {
		d, m := db.Open(t), NewMemory()
		history(t, 120, d, m)
		for _, floor := range []int64{0, 1, 40, 77, 120} {
			for _, driver := range []sqlstore.Driver{d, m} {
				if _, err := driver.Trim(t.Context(), floor, 7); err != nil { // more is left than is shown
					t.Fatal(err)
				}
			}
			for before := int64(0); before <= 121; before++ {
				for _, k := range historyKeys {
					want, err := m.Past(t.Context(), k, before, 9)
					if err != nil {
						t.Fatal(err)
					}
					wantPast(t, d, k, before, 9, want)
				}
			}
		}
	},
}

func wantPast(t testing.TB, d sqlstore.Driver, k sqlstore.Key, before int64, limit int, want []sqlstore.Row) {
	t.Helper()
	got, err := d.Past(t.Context(), k, before, limit)
	if err != nil {
		t.Fatalf("Past(%s, %d): %v", k, before, err)
	}
	wantRows(t, got, want)
}
