package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

var readTests = map[string]func(*testing.T, Database){
	"the empty store": func(t *testing.T, db Database) {
		d := db.Open(t)
		wantBounds(t, d, 0, 0)
		wantRows(t, scanAll(t, d, sqlstore.ScanRequest{Limit: 10}), nil)
		if log := changes(t, d, 0); len(log) != 0 {
			t.Fatalf("an empty log has %d entries", len(log))
		}
		if r, err := d.RevisionAt(t.Context(), start); r != 0 || err != nil {
			t.Fatalf("RevisionAt gave %d, %v", r, err)
		}
		if rows, err := d.Expired(t.Context(), start, 10); len(rows) != 0 || err != nil {
			t.Fatalf("Expired gave %v, %v", rows, err)
		}
		if n, err := d.Trim(t.Context(), 10, 10); n != 0 || err != nil {
			t.Fatalf("Trim gave %d, %v", n, err)
		}
		wantBounds(t, d, 0, 0)
		_, err := d.Read(t.Context(), pod("a"), 0)
		wantErr(t, err, &sqlstore.NotFoundError{Key: pod("a")})
		_, err = d.Read(t.Context(), pod("a"), 1)
		wantErr(t, err, &sqlstore.FutureError{Revision: 1, Head: 0})
		stats, err := d.Stats(t.Context())
		if err != nil || stats.LiveRows != 0 || stats.HistoryRows != 0 || stats.ClusterID == "" || stats.SchemaVersion == 0 {
			t.Fatalf("Stats gave %+v, %v", stats, err)
		}
	},
	"key order is bytewise": func(t *testing.T, db Database) {
		d := db.Open(t)
		keys := []sqlstore.Key{
			key("configmaps", "A", "z"), key("configmaps", "a", "A"), key("configmaps", "a", "B"), key("configmaps", "a", "a"), key("configmaps", "a", "a-b"),
			key("configmaps", "a", "a.b"), key("configmaps", "a", "a0"), key("configmaps", "a", "aa"), key("configmaps", "a", "b"), key("configmaps", "a", "ä"),
			key("configmaps", "a-b", "a"), key("configmaps", "a.b", "a"), key("configmaps", "aa", "a"), key("nodes", "", "N"), key("nodes", "", "n"), key("nodes", "", "n:1"),
			key("nodes.metrics", "", "n"), key("nodes0", "", "n"),
		}
		shuffled := slices.Clone(keys)
		for i := range shuffled {
			j := (i * 7) % len(shuffled)
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		}
		for _, k := range shuffled {
			must(t, d, create(k, k.String()))
		}
		for limit := 1; limit <= len(keys)+1; limit++ {
			for _, revision := range []int64{0, int64(len(keys))} {
				var got []sqlstore.Key
				for _, r := range scanAll(t, d, sqlstore.ScanRequest{Limit: limit, Revision: revision}) {
					got = append(got, r.Key)
				}
				if !slices.Equal(got, keys) {
					t.Fatalf("pages of %d at %d: keys are %v", limit, revision, got)
				}
			}
		}
	},
	"scans stay in their range": scanRanges,
	"everything at once":        readAll,
	"snapshots": func(t *testing.T, db Database) {
		d := db.Open(t)
		m := newModel()
		history(t, 60, d, m)
		head := int64(60)
		for revision := int64(1); revision <= head; revision++ {
			req := sqlstore.ScanRequest{Limit: []int{1, 3, 1000}[revision%3], Revision: revision}
			wantRows(t, scanAll(t, d, req), scanAll(t, m, req))
			for _, k := range historyKeys {
				want, wantE := m.Read(t.Context(), k, revision)
				got, err := d.Read(t.Context(), k, revision)
				if (err == nil) != (wantE == nil) {
					t.Fatalf("%s at %d: error is %v, want %v", k, revision, err, wantE)
				}
				wantRow(t, got, want)
			}
		}
		_, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 1, Revision: head + 1})
		wantErr(t, err, &sqlstore.FutureError{Revision: head + 1, Head: head})
	},
	"the log": func(t *testing.T, db Database) {
		d := db.Open(t)
		k := pod("a")
		must(t, d, create(k, "1"))
		must(t, d, update(k, 1, "2"))
		must(t, d, remove(k, 2, "3"))
		must(t, d, create(k, "4"))
		want := []sqlstore.Change{
			{Row: sqlstore.Row{Key: k, Revision: 1, Created: 1, Superseded: 2, Value: []byte("1"), WrittenAt: start}},
			{Row: sqlstore.Row{Key: k, Revision: 2, Created: 1, Superseded: 3, Value: []byte("2"), WrittenAt: start}, PrevRevision: 1, PrevValue: []byte("1")},
			{Row: sqlstore.Row{Key: k, Revision: 3, Created: 1, Superseded: 3, Deleted: true, Value: []byte("3"), WrittenAt: start}, PrevRevision: 2, PrevValue: []byte("2")},
			{Row: sqlstore.Row{Key: k, Revision: 4, Created: 4, Value: []byte("4"), WrittenAt: start}},
		}
		for after := range int64(6) {
			for limit := 1; limit < 6; limit++ {
				for _, previous := range []bool{true, false} {
					got, err := d.Changes(t.Context(), after, limit, previous)
					if err != nil {
						t.Fatal(err)
					}
					expect := want[min(after, 4):min(after+int64(limit), 4)]
					if len(got) != len(expect) {
						t.Fatalf("after %d, limit %d: %d entries, want %d", after, limit, len(got), len(expect))
					}
					for i := range got {
						wantChange(t, got[i], expect[i], previous)
					}
				}
			}
		}
	},
	"changes are bounded in bytes": func(t *testing.T, db Database) {
		d := db.Open(t)
		value := strings.Repeat("x", 1<<20)
		const objects = 2*sqlstore.ChangesBytes>>20 + 1
		for i := range objects {
			must(t, d, create(pod(fmt.Sprint(i)), value))
		}
		must(t, d, update(pod("0"), 1, value))
		for _, previous := range []bool{false, true} {
			var sizes []int
			for after := int64(0); after <= objects; {
				page, err := d.Changes(t.Context(), after, 1000, previous)
				if err != nil || len(page) == 0 {
					t.Fatal(len(page), err)
				}
				sizes = append(sizes, len(page))
				after = page[len(page)-1].Revision
			}
			if want := []int{sqlstore.ChangesBytes >> 20, sqlstore.ChangesBytes >> 20, 2}; !slices.Equal(sizes, want) {
				t.Errorf("pages of %v changes of 1 MB, want %v", sizes, want)
			}
		}
	},
	"last changes": func(t *testing.T, db Database) {
		d := db.Open(t)
		must(t, d, create(pod("a"), "1"))
		must(t, d, create(key("nodes", "", "n"), "2"))
		must(t, d, remove(pod("a"), 1, "3"))
		for _, c := range []struct {
			after, upTo int64
			want        map[string]int64
		}{{0, 3, map[string]int64{"pods": 3, "nodes": 2}}, {0, 2, map[string]int64{"pods": 1, "nodes": 2}}, {2, 9, map[string]int64{"pods": 3}}, {3, 3, map[string]int64{}}} {
			if got, err := d.LastChanges(t.Context(), c.after, c.upTo); err != nil || !maps.Equal(got, c.want) {
				t.Errorf("after %d, up to %d: %v, %v; want %v", c.after, c.upTo, got, err, c.want)
			}
		}
		if _, err := d.Trim(t.Context(), 3, 10); err != nil { // the deletion is not in the table any more
			t.Fatal(err)
		}
		var gone *sqlstore.CompactedError
		if got, err := d.LastChanges(t.Context(), 2, 3); !errors.As(err, &gone) {
			t.Errorf("below the floor: %v, %v", got, err)
		}
	},
	"expired rows": func(t *testing.T, db Database) {
		d := db.Open(t)
		op := func(name string, in time.Duration) sqlstore.Txn {
			return sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key("events", "default", name), Value: []byte(name), ExpiresAt: start.Add(in)}}}
		}
		apply(t, d, op("c", 3*time.Minute), op("a", time.Minute), create(key("events", "default", "never"), "x"), op("b", 2*time.Minute), op("gone", time.Second))
		must(t, d, remove(key("events", "default", "gone"), 5, ""))
		for minutes, want := range []string{"", "a", "ab", "abc", "abc"} {
			rows, err := d.Expired(t.Context(), start.Add(time.Duration(minutes)*time.Minute), 10)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, r := range rows {
				got += r.Key.Name
			}
			if got != want {
				t.Fatalf("after %d minutes %q had expired, want %q", minutes, got, want)
			}
		}
		if rows, _ := d.Expired(t.Context(), start.Add(time.Hour), 2); len(rows) != 2 {
			t.Fatalf("a limit of 2 gave %d rows", len(rows))
		}
		// A write without an expiry ends it.
		must(t, d, update(key("events", "default", "a"), 2, "kept"))
		if rows, _ := d.Expired(t.Context(), start.Add(time.Minute), 10); len(rows) != 0 {
			t.Fatalf("%s has expired", names(rows))
		}
		// ChangesBytes of values end a page too.
		large := strings.Repeat("x", sqlstore.ChangesBytes/2)
		for i, name := range []string{"large0", "large1", "large2"} {
			txn := op(name, time.Duration(i)*time.Millisecond)
			txn.Ops[0].Value = []byte(large)
			must(t, d, txn)
		}
		if rows, err := d.Expired(t.Context(), start.Add(time.Hour), 10); err != nil || len(rows) != 2 {
			t.Fatalf("a page of large values has %s, %v", names(rows), err)
		}
	},
	"the revision at a time": func(t *testing.T, db Database) {
		d := db.Open(t)
		for i := range 20 {
			applyAt(t, d, start.Add(time.Duration(i)*time.Minute), create(pod(fmt.Sprint(i)), ""), create(pod(fmt.Sprint(i, "-")), ""))
		}
		for i := -1; i < 22; i++ {
			r, err := d.RevisionAt(t.Context(), start.Add(time.Duration(i)*time.Minute+time.Second))
			if want := int64(2 * min(i+1, 20)); r != want || err != nil {
				t.Fatalf("at minute %d: %d, %v; want %d", i, r, err, want)
			}
		}
	},
	"notes": func(t *testing.T, db Database) {
		d := db.Open(t)
		for _, step := range []struct {
			name, was, is string
			ok            bool
			note          string
		}{
			{"a", "", "1", true, "1"}, {"a", "", "2", false, "1"}, {"b", "1", "2", false, ""}, {"a", "1", "2", true, "2"}, {"b", "", "x", true, "x"}, {"a", "2", "", true, ""}, {"a", "", "3", true, "3"},
		} {
			ok, err := d.SetNote(t.Context(), step.name, step.was, step.is)
			if ok != step.ok || err != nil {
				t.Fatalf("%+v: %t, %v", step, ok, err)
			}
			if note, err := d.Note(t.Context(), step.name); note != step.note || err != nil {
				t.Fatalf("%+v left %q, %v", step, note, err)
			}
		}
	},
	"since when a revision held": func(t *testing.T, db Database) {
		d := db.Open(t)
		since := func(revision int64, want time.Duration, slack time.Duration) {
			t.Helper()
			at, ok, err := d.Since(t.Context(), revision)
			if err != nil || ok != (want >= 0) {
				t.Fatalf("revision %d held since %s, %t, %v", revision, at, ok, err)
			}
			if early := start.Add(want); ok && (at.Before(early) || at.After(early.Add(slack))) {
				t.Fatalf("revision %d held since %s, want %s", revision, at, early)
			}
		}
		since(1, -1, 0)
		for i := range 10 {
			applyAt(t, d, start.Add(time.Duration(i)*time.Minute), create(pod(fmt.Sprint(i)), ""))
		}
		applyAt(t, d, start.Add(10*time.Minute), sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Delete, Key: pod("9"), Expect: 10}}})
		since(1, 0, 0)
		since(11, 10*time.Minute, 0)
		since(12, -1, 0)
		// The row of the floor, a delete, goes; nothing was written after it.
		if _, err := d.Trim(t.Context(), 11, 100); err != nil {
			t.Fatal(err)
		}
		since(11, 10*time.Minute, time.Second)
		applyAt(t, d, start.Add(20*time.Minute), create(pod("a"), ""), sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Delete, Key: pod("8"), Expect: 9}}})
		since(11, 10*time.Minute, time.Second)
		since(12, 20*time.Minute, 0)
		if _, err := d.Trim(t.Context(), 13, 100); err != nil {
			t.Fatal(err)
		}
		since(13, 20*time.Minute, time.Second)
	},
	"a scan sees whole batches": func(t *testing.T, db Database) {
		d := db.Open(t)
		const size = 200
		done := make(chan struct{})
		go func() {
			defer close(done)
			for round := range 20 {
				var ops sqlstore.Txn
				for i := range size {
					ops = join(ops, create(pod(fmt.Sprintf("%d-%d", round, i)), "x"))
				}
				if out, err := d.Apply(t.Context(), []sqlstore.Txn{ops}, start); err != nil || out[0].Err != nil {
					t.Error(err, out)
					return
				}
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			b, err := d.Bounds(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(rows)%size != 0 || b.Head < int64(len(rows)) {
				t.Fatalf("a scan has %d rows, of batches of %d; then the head is %d", len(rows), size, b.Head)
			}
		}
	},
	"statistics": func(t *testing.T, db Database) {
		d := db.Open(t)
		apply(t, d, create(pod("a"), "1234"), create(pod("b"), "12"), create(key("nodes", "", "n"), "1"), update(pod("b"), 2, "123"))
		s, err := d.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []sqlstore.ResourceStats{{Resource: "nodes", Objects: 1, Bytes: 1}, {Resource: "pods", Objects: 2, Bytes: 7}}
		if s.LiveRows != 3 || s.HistoryRows != 1 || !slices.Equal(s.Resources, want) || s.Bytes == 0 || s.Bounds.Head != 4 || !s.OldestWrittenAt.Equal(start) {
			t.Fatalf("statistics are %+v", s)
		}
	},
}

func scanRanges(t *testing.T, db Database) {
	d, m := db.Open(t), newModel()
	for _, resource := range []string{"a", "b", "c"} {
		for _, namespace := range []string{"", "n", "o"} {
			for _, name := range []string{"x", "y"} {
				for _, driver := range []sqlstore.Driver{d, m} {
					must(t, driver, create(key(resource, namespace, name), "v"))
				}
			}
		}
	}
	for _, driver := range []sqlstore.Driver{d, m} {
		must(t, driver, update(key("b", "n", "x"), 9, "w"))
		must(t, driver, remove(key("b", "o", "y"), 12, "w"))
	}
	for _, revision := range []int64{0, 5, 18, 19, 20} {
		for _, resource := range []string{"", "a", "b", "c", "d"} {
			for _, namespace := range []string{"", "n", "o", "p"} {
				for _, after := range []sqlstore.Key{{}, key("a", "o", "y"), key("b", "", "x"), key("b", "n", "x"), key("b", "n", "y"), key("b", "nn", ""), key("b", "o", "x"), key("c", "o", "y")} {
					for _, limit := range []int{1, 2, 50} {
						req := sqlstore.ScanRequest{Resource: resource, Namespace: namespace, After: after, Limit: limit, Revision: revision}
						got, err := d.Scan(t.Context(), req)
						if err != nil {
							t.Fatalf("%+v: %v", req, err)
						}
						want, _ := m.Scan(t.Context(), req)
						if names(got) != names(want) {
							t.Fatalf("%+v: rows are %s, want %s", req, names(got), names(want))
						}
					}
				}
			}
		}
	}
	if _, err := d.Scan(t.Context(), sqlstore.ScanRequest{}); err == nil {
		t.Fatal("a scan without a limit was answered")
	}
}

// wantChange compares log entries. The end of a row may have come after the change was made, and is not
// compared for rows that were live then.
func wantChange(t testing.TB, got, want sqlstore.Change, previous bool) {
	t.Helper()
	wantRow(t, got.Row, want.Row)
	if got.PrevRevision != want.PrevRevision {
		t.Fatalf("%s at %d: previous revision is %d, want %d", got.Key, got.Revision, got.PrevRevision, want.PrevRevision)
	}
	if previous && string(got.PrevValue) != string(want.PrevValue) || !previous && got.PrevValue != nil {
		t.Fatalf("%s at %d: previous value is %q, want %q", got.Key, got.Revision, got.PrevValue, want.PrevValue)
	}
}
