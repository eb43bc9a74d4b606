package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// retentionObserver counts the rounds of a compactor, and remembers its retention.
type retentionObserver struct {
	counter
	kept *atomic.Value // sqlstore.Retention
	left *atomic.Int64
}

func (k retentionObserver) EffectiveRetention(kept sqlstore.Retention, left time.Duration) {
	k.kept.Store(kept)
	k.left.Store(int64(left))
	k.rounds.Add(1)
}

// loweredRetention starts servers on one database with a shorter retention than the ones before. History that
// only the longer retention keeps stays for a day in which servers run, whatever the clocks, or is deleted at
// once on an explicit request.
func loweredRetention(t *testing.T, db Database) {
	d := db.Open(t)
	var wall, elapsed atomic.Int64
	var now atomic.Value
	now.Store(sqlstore.Retention{})
	watch := retentionObserver{counter{new(atomic.Int64)}, &now, new(atomic.Int64)}
	run := func(kept string, lowerNow bool, fn func(s *server)) {
		t.Helper()
		r, err := sqlstore.ParseRetention(kept)
		if err != nil {
			t.Fatal(err)
		}
		s := serve(t, d, sqlstore.Config{
			RetentionByResource: r, LowerNow: lowerNow, LogRetention: 10 * time.Minute, CompactEvery: time.Millisecond, PackEvery: time.Millisecond, Observer: watch,
			Clock: func() time.Time { return start.Add(time.Duration(wall.Load())) }, Elapsed: func() time.Duration { return time.Duration(elapsed.Load()) },
		})
		fn(s)
		s.stop()
	}
	pass := func(by time.Duration) {
		wall.Add(int64(by))
		elapsed.Add(int64(by))
	}
	rounds := func() {
		t.Helper()
		// The round under way may have read the clocks before they moved, and the next one finishes its
		// work.
		seen := watch.rounds.Load()
		waitFor(t, "rounds of compaction", func() bool { return watch.rounds.Load() > seen+6 })
	}
	keeps := func(want string, left time.Duration) {
		t.Helper()
		rounds()
		if got := now.Load().(sqlstore.Retention); got.String() != want || time.Duration(watch.left.Load()) != left {
			t.Fatalf("history is kept for %s, with %s left; want %s and %s", got, time.Duration(watch.left.Load()), want, left)
		}
	}
	var first, last int64
	run("nodes=5m,*=168h", false, func(s *server) {
		keeps("nodes=5m0s,*=168h0m0s", 0)
		for i := range 10 {
			op := sqlstore.Op{Verb: sqlstore.Create, Key: pod("a"), Value: fmt.Appendf(nil, `{"n":%d}`, i)}
			if i > 0 {
				op.Verb, op.Expect = sqlstore.Update, last
			}
			r, err := s.Write(t.Context(), op)
			if err != nil {
				t.Fatal(err)
			}
			if last = r.Revisions[0]; i == 0 {
				first = last
			}
			pass(time.Hour)
		}
		keeps("nodes=5m0s,*=168h0m0s", 0)
	})
	there := func(s *server, want bool) {
		t.Helper()
		rows, err := s.Past(t.Context(), pod("a"), first+1, 1)
		if err != nil || (len(rows) == 1) != want {
			t.Fatalf("of the first state there are %d rows, %v; want %t", len(rows), err, want)
		}
	}
	wall.Add(int64(48 * time.Hour)) // a clock that is set, or a time in which no server ran
	run("5m", false, func(s *server) {
		keeps("nodes=5m0s,*=168h0m0s", sqlstore.LowerAfter)
		pass(23 * time.Hour)
		keeps("nodes=5m0s,*=168h0m0s", time.Hour)
		there(s, true)
	})
	run("5m", false, func(s *server) { // the time is kept across restarts
		keeps("nodes=5m0s,*=168h0m0s", time.Hour)
		there(s, true)
	})
	run("7d", false, func(s *server) { keeps("168h0m0s", 0) }) // and ends with a retention that is long enough
	// A database without a note counts as one that promised the history in its packs.
	note, err := d.Note(t.Context(), "retention")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := d.SetNote(t.Context(), "retention", note, ""); !ok || err != nil {
		t.Fatalf("taking the note away: %t, %v", ok, err)
	}
	pass(30 * time.Minute) // marks are to the second
	run("5m", false, func(s *server) {
		keeps("82h0m0s", sqlstore.LowerAfter)
		there(s, true)
		pass(25 * time.Hour)
		keeps("5m0s", 0)
		waitFor(t, "the end of the history", func() bool { return s.Floor() >= last })
	})
	// Nothing is there that only a longer retention keeps: it may be lowered.
	run("2h", false, func(s *server) {
		keeps("2h0m0s", 0)
		pass(2 * time.Hour) // time without a server and without writes does not count
		keeps("2h0m0s", 0)
	})
	run("1h", false, func(s *server) { keeps("1h0m0s", 0) })
	// History younger than the lower retention is kept as promised, too.
	run("2h", false, func(s *server) {
		keeps("2h0m0s", 0)
		r, err := s.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Update, Key: pod("a"), Expect: last, Value: []byte(`{"young":true}`)})
		if err != nil {
			t.Fatal(err)
		}
		last = r.Revisions[0]
		pass(time.Minute)
	})
	run("1h", false, func(s *server) { keeps("2h0m0s", sqlstore.LowerAfter) })
	run("168h", false, func(s *server) {
		keeps("168h0m0s", 0)
		for range 3 {
			r, err := s.Write(t.Context(), sqlstore.Op{Verb: sqlstore.Update, Key: pod("a"), Expect: last, Value: []byte(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			last = r.Revisions[0]
			pass(time.Hour)
		}
		keeps("168h0m0s", 0)
	})
	// A machine that has lost the time does not know how old history is.
	wall.Add(-int64(30 * 24 * time.Hour))
	run("5m", false, func(s *server) { keeps("168h0m0s", sqlstore.LowerAfter) })
	wall.Add(int64(30 * 24 * time.Hour))
	run("5m", true, func(s *server) { keeps("5m0s", 0) })
}
