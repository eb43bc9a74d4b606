package storetest

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

var applyTests = map[string]func(*testing.T, Database){
	"empty batch": func(t *testing.T, db Database) {
		d := db.Open(t)
		apply(t, d)
		wantBounds(t, d, 0, 0)
	},
	"life of an object": func(t *testing.T, db Database) {
		d := db.Open(t)
		k := pod("a")
		if r := must(t, d, create(k, "one")); r != 1 {
			t.Fatalf("first revision is %d", r)
		}
		first := sqlstore.Row{Key: k, Revision: 1, Created: 1, Value: []byte("one"), WrittenAt: start}
		wantCurrent(t, d, first)
		out := apply(t, d, update(k, 1, "two"))[0]
		if out.Err != nil || out.Revisions[0] != 2 || out.Created[0] != 1 || !out.WrittenAt.Equal(start) {
			t.Fatalf("update gave %+v", out)
		}
		wantCurrent(t, d, sqlstore.Row{Key: k, Revision: 2, Created: 1, Value: []byte("two"), WrittenAt: start})
		out = apply(t, d, remove(k, 2, "last"))[0]
		if out.Err != nil || out.Revisions[0] != 3 || out.Created[0] != 1 {
			t.Fatalf("delete gave %+v", out)
		}
		_, err := d.Read(t.Context(), k, 0)
		wantErr(t, err, &sqlstore.NotFoundError{Key: k})
		out = apply(t, d, create(k, "again"))[0]
		if out.Err != nil || out.Revisions[0] != 4 || out.Created[0] != 4 {
			t.Fatalf("second create gave %+v", out)
		}
		first.Superseded = 2
		got, err := d.Read(t.Context(), k, 1)
		if err != nil {
			t.Fatal(err)
		}
		wantRow(t, got, first)
	},
	"conditions": func(t *testing.T, db Database) {
		d := db.Open(t)
		a, b := pod("a"), pod("b")
		must(t, d, create(a, "one"))
		r := must(t, d, update(a, 1, "two"))
		current := sqlstore.Row{Key: a, Revision: r, Created: 1, Value: []byte("two"), WrittenAt: start}
		for _, c := range []struct {
			txn  sqlstore.Txn
			want error
		}{
			{create(a, "x"), &sqlstore.ExistsError{Key: a, Current: current}},
			{update(a, 1, "x"), &sqlstore.ConflictError{Key: a, Expect: 1, Current: current}},
			{update(a, 0, "x"), &sqlstore.ConflictError{Key: a, Expect: 0, Current: current}},
			{update(a, 99, "x"), &sqlstore.ConflictError{Key: a, Expect: 99, Current: current}},
			{remove(a, 1, "x"), &sqlstore.ConflictError{Key: a, Expect: 1, Current: current}},
			{update(b, 1, "x"), &sqlstore.NotFoundError{Key: b}},
			{update(b, r, "x"), &sqlstore.NotFoundError{Key: b}}, // another key's revision
			{remove(b, r, "x"), &sqlstore.NotFoundError{Key: b}},
		} {
			wantErr(t, apply(t, d, c.txn)[0].Err, c.want)
		}
		wantBounds(t, d, 0, r)
		wantCurrent(t, d, current)
	},
	"one failure spares the batch": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "a"))
		out := apply(t, d, create(pod("b"), "b"), create(pod("a"), "x"), update(pod("a"), 7, "x"), remove(pod("c"), 1, ""), create(pod("c"), "c"))
		wantOutcomes(t, out, 2, 0, 0, 0, 3)
		wantBounds(t, d, 0, 3)
		contiguous(t, changes(t, d, 0), 0)
	},
	"a batch sees itself": func(t *testing.T, db Database) {
		d := db.Open(t)
		k := pod("a")
		out := apply(t, d, create(k, "1"), create(k, "x"), update(k, 1, "2"), update(k, 1, "x"), remove(k, 2, "3"), update(k, 3, "x"), create(k, "4"))
		wantOutcomes(t, out, 1, 0, 2, 0, 3, 0, 4)
		wantErr(t, out[1].Err, &sqlstore.ExistsError{Key: k, Current: sqlstore.Row{Key: k, Revision: 1, Created: 1, Value: []byte("1"), WrittenAt: start}})
		wantErr(t, out[3].Err, &sqlstore.ConflictError{Key: k, Expect: 1, Current: sqlstore.Row{Key: k, Revision: 2, Created: 1, Value: []byte("2"), WrittenAt: start}})
		wantErr(t, out[5].Err, &sqlstore.NotFoundError{Key: k})
		if got := []int64{out[0].Created[0], out[2].Created[0], out[4].Created[0], out[6].Created[0]}; fmt.Sprint(got) != "[1 1 1 4]" {
			t.Fatalf("created revisions are %v", got)
		}
	},
	"several operations hold together": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "a"))
		out := apply(t, d,
			join(create(pod("b"), "b"), create(pod("c"), "c")),                              // 2, 3
			join(create(pod("d"), "d"), create(pod("b"), "x")),                              // fails at its second
			join(update(pod("a"), 1, "a2"), remove(pod("b"), 2, ""), create(pod("e"), "e")), // 4, 5, 6
			join(update(pod("a"), 1, "x"), create(pod("f"), "f")),                           // fails at its first
			create(pod("g"), "g"), // 7
		)
		wantOutcomes(t, out, 2, 0, 4, 0, 7)
		if fmt.Sprint(out[2].Revisions, out[2].Created) != "[4 5 6] [1 2 6]" {
			t.Fatalf("third transaction gave %+v", out[2])
		}
		wantBounds(t, d, 0, 7)
		got := scanAll(t, d, sqlstore.ScanRequest{Limit: 100})
		if names(got) != "pods/default/a@4 pods/default/c@3 pods/default/e@6 pods/default/g@7 " {
			t.Fatalf("live rows are %s", names(got))
		}
		contiguous(t, changes(t, d, 0), 0)
	},
	"a batch of failures leaves nothing": func(t *testing.T, db Database) {
		d := db.Open(t)
		wantOutcomes(t, apply(t, d, update(pod("a"), 1, "x"), remove(pod("b"), 1, "x")), 0, 0)
		wantBounds(t, d, 0, 0)
		if r := must(t, d, create(pod("a"), "a")); r != 1 {
			t.Fatalf("next revision is %d", r)
		}
	},
	"a cancelled batch leaves nothing": func(t *testing.T, db Database) {
		d := db.Open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Apply(ctx, []sqlstore.Txn{create(pod("a"), "a")}, start); err == nil {
			t.Fatal("a cancelled batch was applied")
		}
		wantBounds(t, d, 0, 0)
		must(t, d, create(pod("a"), "a"))
	},
	"values are bytes": func(t *testing.T, db Database) {
		d := db.Open(t)
		long := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		for i, value := range [][]byte{nil, {}, {0}, []byte("{}"), {0xff, 0xfe, 0, 1}, []byte("é\n\t'\"\\"), long} {
			k := pod(fmt.Sprint("v", i))
			written := bytes.Clone(value)
			must(t, d, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: k, Value: written}}})
			for j := range written {
				written[j]++ // the driver must not hold on to it
			}
			row, err := d.Read(t.Context(), k, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(row.Value, value) {
				t.Fatalf("value %d came back as %q", i, row.Value)
			}
			for j := range row.Value {
				row.Value[j]++ // it belongs to the caller
			}
			if row, _ = d.Read(t.Context(), k, 0); !bytes.Equal(row.Value, value) {
				t.Fatalf("value %d changed after it was returned", i)
			}
		}
	},
	"times have microseconds": func(t *testing.T, db Database) {
		d := db.Open(t)
		now := start.Add(123456789 * time.Nanosecond)
		out := applyAt(t, d, now, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: pod("a"), ExpiresAt: now.Add(time.Hour)}}})
		row, err := d.Read(t.Context(), pod("a"), 0)
		if err != nil {
			t.Fatal(err)
		}
		want := now.Truncate(time.Microsecond)
		if !row.WrittenAt.Equal(want) || !row.ExpiresAt.Equal(want.Add(time.Hour)) || !out[0].WrittenAt.Equal(want) {
			t.Fatalf("written %v, expires %v, returned %v; want %v", row.WrittenAt, row.ExpiresAt, out[0].WrittenAt, want)
		}
	},
	"a large batch": func(t *testing.T, db Database) {
		d := db.Open(t)
		var batch []sqlstore.Txn
		for i := range 2000 {
			batch = append(batch, create(pod(fmt.Sprintf("p%04d", i)), fmt.Sprint(i)))
		}
		for i, out := range apply(t, d, batch...) {
			if out.Err != nil || out.Revisions[0] != int64(i+1) {
				t.Fatalf("outcome %d is %+v", i, out)
			}
		}
		contiguous(t, changes(t, d, 0), 0)
	},
	"survives a restart": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "a"))
		must(t, d, update(pod("a"), 1, "b"))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = db.Open(t)
		wantBounds(t, d, 0, 2)
		wantCurrent(t, d, sqlstore.Row{Key: pod("a"), Revision: 2, Created: 1, Value: []byte("b"), WrittenAt: start})
		if r := must(t, d, create(pod("b"), "b")); r != 3 {
			t.Fatalf("revision after a restart is %d", r)
		}
	},
	"closed": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "a"))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatalf("second Close: %v", err)
		}
		_, err := d.Apply(t.Context(), []sqlstore.Txn{create(pod("b"), "b")}, start)
		wantErr(t, err, sqlstore.ErrClosed)
		_, err = d.Bounds(t.Context())
		wantErr(t, err, sqlstore.ErrClosed)
		_, err = d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 1})
		wantErr(t, err, sqlstore.ErrClosed)
		_, err = d.Trim(t.Context(), 1, 1)
		wantErr(t, err, sqlstore.ErrClosed)
	},
}

func wantCurrent(t testing.TB, d sqlstore.Driver, want sqlstore.Row) {
	t.Helper()
	got, err := d.Read(t.Context(), want.Key, 0)
	if err != nil {
		t.Fatal(err)
	}
	wantRow(t, got, want)
}

// wantOutcomes compares first revisions; 0 stands for a failure.
func wantOutcomes(t testing.TB, out []sqlstore.Outcome, want ...int64) {
	t.Helper()
	for i := range out {
		switch {
		case want[i] == 0 && out[i].Err == nil:
			t.Fatalf("outcome %d is %+v, want a failure", i, out[i])
		case want[i] != 0 && (out[i].Err != nil || out[i].Revisions[0] != want[i]):
			t.Fatalf("outcome %d is %+v, want revision %d", i, out[i], want[i])
		}
	}
}

// contiguous checks that a log has every revision after one, in order.
func contiguous(t testing.TB, log []sqlstore.Change, after int64) {
	t.Helper()
	for i := range log {
		if log[i].Revision != after+int64(i)+1 {
			t.Fatalf("entry %d of the log after %d has revision %d", i, after, log[i].Revision)
		}
	}
}
