package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

var damageTests = map[string]func(*testing.T, Database){
	// A driver declares whether it checks rows, and its tests show that it does.
	"a changed row": func(t *testing.T, db Database) {
		d := db.Open(t)
		damager, ok := db.(Damager)
		if ok != d.ChecksRows() {
			t.Fatalf("ChecksRows gives %v; the test's database can damage a row: %v", d.ChecksRows(), ok)
		}
		must(t, d, create(pod("a"), `{"n":1}`))
		must(t, d, create(pod("b"), `{"n":2}`))
		must(t, d, create(pod("c"), `{"n":3}`))
		for way, found := range damaged(t, d) {
			if len(found) > 0 {
				t.Errorf("%s: %v before anything was damaged", way, found)
			}
		}
		if !d.ChecksRows() {
			return
		}
		damager.Damage(t, pod("b"))
		for way, found := range damaged(t, d) {
			if fmt.Sprint(found) != "[2]" {
				t.Errorf("%s: %v, want revision 2 alone", way, found)
			}
		}
		must(t, d, update(pod("b"), 2, `{"n":4}`)) // mends it
		if found := damaged(t, d)["load"]; len(found) > 0 {
			t.Errorf("load: %v after the row was replaced", found)
		}
	},
	"the last state of a damaged row": func(t *testing.T, db Database) {
		d := db.Open(t)
		damager, ok := db.(Damager)
		if !ok {
			return
		}
		ctx := t.Context()
		must(t, d, create(pod("a"), `{"n":1}`))
		must(t, d, create(pod("b"), `{"n":2}`))
		must(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: pod("c"), Value: []byte(`{"n":3}`), ExpiresAt: start}}})
		damager.Damage(t, pod("b"))
		damager.Damage(t, pod("c"))
		for _, k := range []sqlstore.Key{pod("a"), pod("b")} {
			row, err := d.Read(ctx, k, 0)
			if err == nil {
				_, err = upkeep.Delete(ctx, d, row)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		serve(t, d, sqlstore.Config{ExpireEvery: time.Millisecond, Clock: func() time.Time { return start.Add(time.Hour) }})
		waitFor(t, "the object to expire", func() bool {
			_, err := d.Read(ctx, pod("c"), 0)
			return isA[*sqlstore.NotFoundError](err)
		})
		log, err := d.Changes(ctx, 3, 10, false)
		if err != nil || len(log) != 3 {
			t.Fatalf("%+v, %v", log, err)
		}
		for i, want := range []bool{false, true, true} {
			if c := &log[i]; !c.Deleted || isA[*sqlstore.DamageError](c.Damaged) != want {
				t.Errorf("the delete of %s is %+v, damaged: %v", c.Key, c, c.Damaged)
			}
		}
	},
}

// damaged lists the revisions of rows that are not as they were written, by the ways in which they are read.
func damaged(t *testing.T, d sqlstore.Driver) map[string][]int64 {
	t.Helper()
	ctx := t.Context()
	b, err := d.Bounds(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]int64{}
	var mu sync.Mutex
	look := func(way string) func([]sqlstore.Row) error {
		mu.Lock()
		defer mu.Unlock()
		found[way] = nil
		return func(rows []sqlstore.Row) error {
			mu.Lock()
			defer mu.Unlock()
			for i := range rows {
				if isA[*sqlstore.DamageError](rows[i].Damaged) {
					found[way] = append(found[way], rows[i].Revision)
				}
			}
			return nil
		}
	}
	s := sqlstore.New(d, sqlstore.Config{})
	errs := []error{s.ReadAll(ctx, b.Head, look("load"))}
	if c := d.Attestor(); c != nil {
		var revisions []int64
		err := c.ListRevisions(ctx, b.Head, nil, func(some []int64) error {
			mu.Lock()
			defer mu.Unlock()
			revisions = append(revisions, some...)
			return nil
		})
		errs = append(errs, err, c.ReadRows(ctx, revisions, look("rows beside a cache file")))
	}
	rows, err := d.Scan(ctx, sqlstore.ScanRequest{Limit: 10})
	errs = append(errs, err, look("pages")(rows))
	read := look("reads")
	for i := range rows {
		row, err := d.Read(ctx, rows[i].Key, 0)
		errs = append(errs, err, read([]sqlstore.Row{row}))
	}
	log, err := d.Changes(ctx, b.Floor, int(b.Head), true)
	errs = append(errs, err)
	changed := look("changes")
	for i := range log {
		errs = append(errs, changed([]sqlstore.Row{log[i].Row}))
	}
	report, err := upkeep.Verify(ctx, d, func(sqlstore.Row) error { return nil })
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	found["verify"] = nil
	for _, p := range report.Problems {
		found["verify"] = append(found["verify"], p.Revision)
	}
	return found
}
