package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/upkeep"
)

// sealedPast writes secrets, two of which are deleted and one of these created again, and another object; it
// returns all past states of each key, newest first.
func sealedPast(t *testing.T, d sqlstore.Driver, keys *TestSealer) map[sqlstore.Key][]string {
	t.Helper()
	states := map[sqlstore.Key][]string{}
	live := map[sqlstore.Key]int64{}
	for i := range 150 {
		var batch []sqlstore.Txn
		for _, k := range []sqlstore.Key{secret("a"), secret("b"), secret("c"), pod("a")} {
			verb := sqlstore.Update
			if live[k] == 0 {
				verb = sqlstore.Create
			} else if k.Name != "a" && i == 70 || k.Name == "c" && i == 149 {
				verb = sqlstore.Delete
			}
			if k.Name == "b" && i > 70 {
				continue
			}
			value := fmt.Sprintf(`{"%s":%d}`, loot, i)
			stored, err := keys.Seal(t.Context(), k, []byte(value))
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: verb, Key: k, Expect: live[k], Value: stored}}})
			states[k] = append([]string{value}, states[k]...)
		}
		for n, out := range apply(t, d, batch...) {
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			op := &batch[n].Ops[0]
			if live[op.Key] = out.Revisions[0]; op.Verb == sqlstore.Delete {
				live[op.Key] = 0
			}
		}
	}
	return states
}

// resealedPast encrypts the history with another key, while a server packs, then with none: nothing under the
// old one is left, packed or not, and the past is unchanged.
func resealedPast(t *testing.T, db Database) {
	d, keys := db.Open(t), NewTestSealer("old")
	if !restates(t, d) { // a store in memory has no rewriting
		return
	}
	states := sealedPast(t, d, keys)
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	retain(t, sqlstore.Floors{Log: b.Head - 100, Past: map[string]int64{"": 0}}, d)
	packAll(t, d, 64)
	keys.SetKeys("new", "old")
	rewriteBeside(t, db, d, keys, b.Head)
	keys.SetKeys("new")
	wantStates(t, d, keys, states)
	keys.SetKeys("new", "old")
	again := upkeep.Rewrite{Keys: keys, Form: asStored}
	if done, err := again.Run(t.Context(), d); err != nil || done.Written+done.PastWritten+done.PastLeft != 0 {
		t.Errorf("once more it wrote %+v, %v", done, err)
	}
	// Rows deleted in the meantime, and others that are live, are left alone.
	if n, err := d.ReplaceEnded(t.Context(), []sqlstore.Row{{Key: secret("a"), Revision: 1 << 40, Value: []byte("x")}}); n != 0 || err != nil {
		t.Errorf("a row that is not there was written: %d, %v", n, err)
	}
	live, err := d.Read(t.Context(), secret("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := d.ReplaceEnded(t.Context(), []sqlstore.Row{{Key: live.Key, Revision: live.Revision, Value: []byte("x")}}); n != 0 || err != nil {
		t.Errorf("a live row was written: %d, %v", n, err)
	}
	// Packs that cannot be opened stay and are reported; damaged ones stop nothing.
	db.Exec(t, `UPDATE kv_packed SET value = 'x' WHERE name = 'b'`)
	job := upkeep.Rewrite{Resources: []string{"secrets"}, Keys: NewTestSealer("third"), Form: asStored}
	done, err := job.Run(t.Context(), d)
	if err != nil || done.PastWritten != 0 || done.PastLeft < 200 || len(done.Reasons) == 0 {
		t.Errorf("without its keys it wrote %+v, %v", done, err)
	}
}

func asStored(row *sqlstore.Row) ([]byte, error) { return row.Value, nil }

// rewriteBeside rewrites in two runs, the first of which is interrupted, while another process packs.
func rewriteBeside(t *testing.T, db Database, d sqlstore.Driver, keys *TestSealer, head int64) {
	t.Helper()
	other := db.Open(t)
	ctx, stop := context.WithCancel(t.Context())
	var packing sync.WaitGroup
	packing.Go(func() {
		for to := head - 90; ctx.Err() == nil; to = min(to+10, head) {
			if _, err := other.Retain(ctx, sqlstore.Floors{Log: to, Past: map[string]int64{"": 0}}); err != nil && ctx.Err() == nil && !errors.Is(err, sqlstore.ErrBusy) {
				t.Error(err)
			}
			if err := sqlstore.Pack(ctx, other, 1, func(sqlstore.Packed) {}); err != nil && ctx.Err() == nil && !errors.Is(err, sqlstore.ErrBusy) {
				t.Error(err)
			}
		}
	})
	cut, cancel := context.WithCancel(t.Context())
	first := upkeep.Rewrite{Keys: keys, Form: asStored, Progress: func(done upkeep.Rewritten) {
		if done.PastWritten > 0 {
			cancel()
		}
	}}
	if done, err := first.Run(cut, d); !errors.Is(err, context.Canceled) || done.PastWritten == 0 {
		t.Errorf("interrupted it reports %+v, %v", done, err)
	}
	second := upkeep.Rewrite{Keys: keys, Form: asStored}
	done, err := second.Run(t.Context(), d)
	stop()
	packing.Wait()
	if err != nil || done.PastLeft != 0 || done.Past < 300 {
		t.Fatalf("rewriting gave %+v, %v", done, err)
	}
}

// ReplacedWhilePacking checks that a packer writes nothing once its input was encrypted again after it read it:
// writing would bring the old key back. pack packs, and calls between after it has read.
func ReplacedWhilePacking(t *testing.T, d sqlstore.Driver, pack func(between func()) error) {
	keys, k := NewTestSealer("old"), secret("a")
	states := map[sqlstore.Key][]string{}
	write := func(last int64, n int) int64 {
		for range n {
			value := fmt.Sprintf(`{"%s":%d}`, loot, last)
			stored, err := keys.Seal(t.Context(), k, []byte(value))
			if err != nil {
				t.Fatal(err)
			}
			txn := create(k, string(stored))
			if last > 0 {
				txn = update(k, last, string(stored))
			}
			last, states[k] = must(t, d, txn), append([]string{value}, states[k]...)
		}
		return last
	}
	last := write(0, 10)
	keys.SetKeys("new", "old")
	last = write(last, 1) // which ends the last of the old key: all of those are packed now
	retain(t, sqlstore.Floors{Log: last, Past: map[string]int64{"": 0}}, d)
	packAll(t, d, 64)
	last = write(last, 10)
	retain(t, sqlstore.Floors{Log: last, Past: map[string]int64{"": 0}}, d)
	err := pack(func() {
		job := upkeep.Rewrite{Keys: keys, Form: asStored}
		if done, err := job.Run(t.Context(), d); err != nil || done.PastWritten == 0 {
			t.Errorf("rewriting gave %+v, %v", done, err)
		}
	})
	if !errors.Is(err, sqlstore.ErrBusy) {
		t.Errorf("packing onto what was rewritten gave %v", err)
	}
	packAll(t, d, 64)
	keys.SetKeys("new")
	wantStates(t, d, keys, states)
}

// restates reports whether a driver can store the past in another form.
func restates(t *testing.T, d sqlstore.Driver) bool {
	t.Helper()
	n, err := d.ReplaceEnded(t.Context(), nil)
	if n != 0 || err != nil && !errors.Is(err, errors.ErrUnsupported) {
		t.Fatalf("restating nothing: %d, %v", n, err)
	}
	return err == nil
}

// packing is a driver that packs the rows that are to be restated, between reading and writing.
type packing struct {
	sqlstore.Driver
	calls int
}

func (p *packing) ReplaceEnded(ctx context.Context, rows []sqlstore.Row) (int, error) {
	if p.calls++; p.calls == 1 {
		return 0, sqlstore.Pack(ctx, p.Driver, 1, func(sqlstore.Packed) {})
	}
	return p.Driver.ReplaceEnded(ctx, rows)
}

// resealedWhilePacked encrypts the history with another key, where rows are packed at that moment and so not
// found: missed rows do not count as done.
func resealedWhilePacked(t *testing.T, db Database) {
	d, keys := db.Open(t), NewTestSealer("old")
	if !restates(t, d) {
		return
	}
	k, last := secret("a"), int64(0)
	for i := range 5 {
		stored, err := keys.Seal(t.Context(), k, fmt.Appendf(nil, `{"%s":%d}`, loot, i))
		if err != nil {
			t.Fatal(err)
		}
		if last == 0 {
			last = must(t, d, create(k, string(stored)))
		} else {
			last = must(t, d, update(k, last, string(stored)))
		}
	}
	retain(t, sqlstore.Floors{Log: last, Past: map[string]int64{"": 0}}, d)
	keys.SetKeys("new", "old")
	job := upkeep.Rewrite{Keys: keys, Form: asStored}
	if done, err := job.Run(t.Context(), &packing{Driver: d}); err != nil || done.PastLeft != 0 || done.PastWritten == 0 {
		t.Errorf("rewriting gave %+v, %v", done, err)
	}
	keys.SetKeys("new")
	rows, err := d.Past(t.Context(), k, 0, 100)
	if err != nil || len(rows) < 5 {
		t.Fatal(len(rows), err)
	}
	for i := range rows {
		if _, _, err := keys.Open(t.Context(), k, rows[i].Value); err != nil {
			t.Errorf("at %d: %v", rows[i].Revision, err)
		}
	}
}

// resealedBelowFloors checks that a rewrite with another key includes history below the floors that is still stored: rows
// that no process has packed or deleted yet, and a part of a pack.
func resealedBelowFloors(t *testing.T, db Database) {
	d, keys := db.Open(t), NewTestSealer("old")
	if !restates(t, d) {
		return
	}
	k, last := secret("a"), int64(0)
	write := func() {
		stored, err := keys.Seal(t.Context(), k, fmt.Appendf(nil, `{"%s":%d}`, loot, last))
		switch {
		case err != nil:
			t.Fatal(err)
		case last == 0:
			last = must(t, d, create(k, string(stored)))
		default:
			last = must(t, d, update(k, last, string(stored)))
		}
	}
	for range 5 {
		write()
	}
	retain(t, sqlstore.Floors{Log: last, Past: map[string]int64{"": 0}}, d)
	packAll(t, d, 64)
	within := last - 2
	for range 5 {
		write()
	}
	keys.SetKeys("new", "old")
	for i, floor := range []int64{within, last} {
		retain(t, sqlstore.Floors{Log: last, Past: map[string]int64{"": floor}}, d)
		job := upkeep.Rewrite{Resources: []string{k.Resource}, Keys: keys, Form: asStored}
		if done, err := job.Run(t.Context(), d); err != nil || done.PastLeft != 0 {
			t.Fatalf("rewriting gave %+v, %v", done, err)
		}
		rows, err := d.AllEnded(t.Context(), sqlstore.Cursor{}, 100)
		if want := 10 + i; err != nil || len(rows) != want { // each run has replaced the live row
			t.Fatalf("%d rows have ended, %v; want %d", len(rows), err, want)
		}
		for _, row := range rows {
			if _, stale, err := keys.Open(t.Context(), k, row.Value); err != nil || stale {
				t.Errorf("with the floor at %d, revision %d has an old key (%v)", floor, row.Revision, err)
			}
		}
		keys.SetKeys("newest", "new", "old")
	}
}

// wantStates reads all past states with keys.
func wantStates(t *testing.T, d sqlstore.Driver, keys *TestSealer, states map[sqlstore.Key][]string) {
	t.Helper()
	for k, want := range states {
		rows, err := d.Past(t.Context(), k, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if k.Resource == "secrets" && len(rows) > len(want) && !rows[0].Deleted {
			rows = rows[1:] // which rewriting wrote
		}
		if len(rows) != len(want) {
			t.Fatalf("%s has %d states, and had %d", k, len(rows), len(want))
		}
		for i := range rows {
			if plain, stale, err := keys.Open(t.Context(), k, rows[i].Value); err != nil || stale || string(plain) != want[i] {
				t.Fatalf("%s at %d is %q (stale: %v), %v; want %q", k, rows[i].Revision, plain, stale, err, want[i])
			}
		}
	}
	if report, err := upkeep.Verify(t.Context(), d, func(sqlstore.Row) error { return nil }); err != nil || report.Count != 0 {
		t.Errorf("verify reports %+v, %v", report, err)
	}
}
