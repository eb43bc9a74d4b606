package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// damagedPacks spoils a pack: the present, other keys and packing are not affected, and the error of a read
// names the key.
func damagedPacks(t *testing.T, db Database) {
	d := db.Open(t)
	bad, good := pod("bad"), pod("good")
	last := map[sqlstore.Key]int64{}
	put := func(k sqlstore.Key, n int) {
		for i := range n {
			value := fmt.Sprintf(`{"n":%d}`, i)
			if last[k] == 0 {
				last[k] = must(t, d, create(k, value))
			} else {
				last[k] = must(t, d, update(k, last[k], value))
			}
		}
	}
	packUp := func() {
		b, err := d.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		retain(t, sqlstore.Floors{Log: b.Head, Past: map[string]int64{"": 0}}, d)
		packAll(t, d, 50)
	}
	put(bad, 5)
	put(good, 5)
	packUp()
	if s, err := d.Stats(t.Context()); err != nil || s.Packs == 0 { // a store in memory has none to damage
		return
	}
	db.Exec(t, `UPDATE kv_packed SET value = 'x' WHERE name = 'bad'`)
	middle := last[good] - 1
	for round := range 2 {
		put(bad, 3)
		put(good, 3)
		if round == 1 {
			must(t, d, remove(bad, last[bad], "{}"))
		}
		packUp()
		if rows := scanAll(t, d, sqlstore.ScanRequest{Resource: "pods", Limit: 10}); len(rows) != 2-round {
			t.Fatalf("%d objects are live", len(rows))
		}
		if row, err := d.Read(t.Context(), good, middle); err != nil || string(row.Value) != `{"n":3}` {
			t.Fatalf("the good one was %s, %v", row.Value, err)
		}
		var corrupt *sqlstore.CorruptError
		for what, err := range map[string]error{"Read": readErr(t, d, bad, 3), "Past": pastErr(t, d, bad), "Scan": scanErr(t, d, 3)} {
			if !errors.As(err, &corrupt) || corrupt.Key != bad {
				t.Errorf("%s of a damaged pack gave %v", what, err)
			}
		}
	}
	s, err := d.Stats(t.Context())
	if err != nil || s.HistoryRows != 0 {
		t.Errorf("%d rows were not packed, %v", s.HistoryRows, err)
	}
	report, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil })
	if err != nil || report.Count == 0 || report.Problems[0].Key != bad.String() {
		t.Errorf("verify reports %+v, %v", report, err)
	}
	// The end of a life belongs into the pack that is damaged: it waits until that is not kept.
	db.Exec(t, `DELETE FROM kv_packed WHERE name = 'bad'`)
	put(pod("end"), 3)
	packUp()
	must(t, d, remove(pod("end"), last[pod("end")], "{}"))
	b, _ := d.Bounds(t.Context())
	for range 2 {
		retain(t, sqlstore.Floors{Log: b.Head, Past: map[string]int64{"": 0}}, d)
		packAll(t, d, 1) // by one row at a time
		db.Exec(t, `UPDATE kv_packed SET value = 'x' WHERE name = 'end'`)
	}
	retain(t, sqlstore.Floors{Log: b.Head, Past: map[string]int64{"": b.Head}}, d)
	packAll(t, d, 1)
	forget(t, d)
	if s, err := d.Stats(t.Context()); err != nil || s.Packs+s.HistoryRows != 0 {
		t.Errorf("what is not kept is still there: %+v, %v", s, err)
	}
}

func readErr(t *testing.T, d sqlstore.Driver, k sqlstore.Key, revision int64) error {
	_, err := d.Read(t.Context(), k, revision)
	return err
}

func pastErr(t *testing.T, d sqlstore.Driver, k sqlstore.Key) error {
	_, err := d.Past(t.Context(), k, 0, 100)
	return err
}

func scanErr(t *testing.T, d sqlstore.Driver, revision int64) error {
	_, err := d.Scan(t.Context(), sqlstore.ScanRequest{Resource: "pods", Limit: 10, Revision: revision})
	return err
}

// largePast packs and deletes all of an object whose values are large: one pass leaves nothing. SQLite keeps such rows as they are until
// their history ends.
func largePast(t *testing.T, db Database) {
	d := db.Open(t)
	k := pod("large")
	revision := must(t, d, create(k, "{}"))
	for i := range 9 {
		revision = must(t, d, update(k, revision, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("l", 1100<<10))))
	}
	if rows := olderAll(t, d, revision, 4); len(rows) != 9 {
		t.Fatalf("%d rows have ended", len(rows))
	}
	for _, floor := range []int64{0, revision} {
		retain(t, sqlstore.Floors{Log: revision, Past: map[string]int64{"": floor}}, d)
		packAll(t, d, 20)
		if rows := olderAll(t, d, revision, 4); len(rows) != 9 && floor == 0 || len(rows) != 0 && floor != 0 {
			t.Fatalf("%d rows are kept from %d on", len(rows), floor)
		}
		if s, err := d.Stats(t.Context()); err != nil || (s.Driver == "postgres" || floor != 0) && s.HistoryRows != 0 {
			t.Fatalf("%d rows are not packed, %v", s.HistoryRows, err)
		}
	}
}
