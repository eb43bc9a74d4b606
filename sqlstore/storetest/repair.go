package storetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// repair finds rows that a judge objects to, rolls one back over another bad state,
// deletes one whose history is gone, and never goes back before a delete.
func repair(t *testing.T, db Database) {
	d, ctx := db.Open(t), t.Context()
	judge := func(row sqlstore.Row) error {
		if strings.HasPrefix(string(row.Value), "bad") {
			return errors.New("it is bad")
		}
		return nil
	}
	cluster := sqlstore.Key{Resource: "nodes", Name: "n"}
	must(t, d, create(cluster, "bad")) // 1, later compacted
	first := must(t, d, create(pod("a"), "good 1"))
	good := must(t, d, update(pod("a"), first, "good 2"))
	worse := must(t, d, update(pod("a"), good, "bad 1"))
	bad := must(t, d, update(pod("a"), worse, "bad 2"))
	old := must(t, d, create(pod("b"), "good, and deleted"))
	must(t, d, remove(pod("b"), old, "good, and deleted"))
	again := must(t, d, create(pod("b"), "bad"))
	must(t, d, create(pod("c"), "good"))
	if _, err := d.Trim(ctx, 1, 100); err != nil {
		t.Fatal(err)
	}
	found, err := upkeep.Damages(ctx, d, judge, nil)
	if err != nil || len(found) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, want := range []struct {
		key            sqlstore.Key
		revision, good int64
	}{{cluster, 1, 0}, {pod("a"), bad, good}, {pod("b"), again, 0}} {
		got := found[i]
		to := int64(0)
		if got.Good != nil {
			to = got.Good.Revision
		}
		if got.Row.Key != want.key || got.Row.Revision != want.revision || to != want.good || got.Reason == nil {
			t.Errorf("%+v leads to %d, want %+v", got, to, want)
		}
	}
	one, err := upkeep.Find(ctx, d, pod("a").String(), judge)
	if err != nil || one.Good == nil {
		t.Fatalf("%+v, %v", one, err)
	}
	if sound, err := upkeep.Find(ctx, d, pod("c").String(), judge); err != nil || sound.Reason != nil {
		t.Errorf("%+v, %v", sound, err)
	}
	var none *sqlstore.NotFoundError
	if _, err := upkeep.Find(ctx, d, "pods/default/none", judge); !errors.As(err, &none) {
		t.Errorf("finding nothing: %v", err)
	}
	if _, err := upkeep.Find(ctx, d, "pods", judge); err == nil {
		t.Error("a text that is no key names a row")
	}
	at, err := upkeep.Rollback(ctx, d, one.Row, *one.Good)
	if row, e := d.Read(ctx, pod("a"), 0); err != nil || e != nil || row.Revision != at || string(row.Value) != "good 2" || row.Created != first {
		t.Errorf("after the rollback to %d: %+v, %v, %v", at, row, err, e)
	}
	var conflict *sqlstore.ConflictError
	if _, err := upkeep.Delete(ctx, d, one.Row); !errors.As(err, &conflict) {
		t.Errorf("a row that changed meanwhile: %v", err)
	}
	node, err := upkeep.Find(ctx, d, "nodes/n", judge)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := upkeep.Delete(ctx, d, node.Row, found[2].Row); err != nil {
		t.Fatal(err)
	}
	if left, err := upkeep.Damages(ctx, d, judge, nil); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
	clean(t, d)
}
