package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

type idleSink struct{}

func (idleSink) Apply([]Change) {}

// BenchmarkFeed measures the feed for a committed row, by the size of its group: it converts the
// row for the sink and wakes the writer. The sink does nothing.
func BenchmarkFeed(b *testing.B) {
	for _, rows := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			f := &feed{Store: New(&goneDriver{}, Config{Clock: time.Now}), sink: idleSink{}}
			revision := int64(0)
			b.ReportAllocs()
			for n := 0; n < b.N; {
				b.StopTimer()
				var batch []*write
				for ; len(batch) < rows && n < b.N; n++ {
					revision++
					w := &write{txn: Txn{Ops: []Op{{Verb: Create, Key: Key{Resource: "pods", Name: "a"}}}}, done: make(chan struct{})}
					w.out = Outcome{Revisions: []int64{revision}, Created: []int64{revision}}
					batch = append(batch, w)
					go func() { <-w.done }()
				}
				time.Sleep(time.Duration(len(batch)) * time.Microsecond) // they wait meanwhile
				b.StartTimer()
				if err := f.take(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if f.applied.Load() != revision {
				b.Fatalf("the sink has %d of %d revisions", f.applied.Load(), revision)
			}
		})
	}
}

// TestAttachLeavesFinishedWrites: the memory of a value may be reused once its writer has
// the outcome. A write that lost owns no change of another, though its value has become the same bytes.
func TestAttachLeavesFinishedWrites(t *testing.T) {
	key := Key{Resource: "configmaps", Namespace: "a", Name: "b"}
	w := &write{txn: Txn{Ops: []Op{{Verb: Update, Key: key, Expect: 1, Value: []byte("this one"), Aux: "its"}}}, done: make(chan struct{})}
	found := func() (bool, any) {
		changes := []Change{{Row: Row{Key: key, Revision: 2, Value: []byte("other's.")}, PrevRevision: 1}}
		return attach(changes, []*write{w})[0], changes[0].Aux
	}
	if own, aux := found(); own || aux != nil {
		t.Errorf("under way, with another value: own %v, with %v", own, aux)
	}
	copy(w.txn.Ops[0].Value, "other's.")
	if own, aux := found(); !own || aux != "its" {
		t.Errorf("under way, with this value: own %v, with %v", own, aux)
	}
	w.finish(Outcome{Err: errors.New("it lost")})
	if own, aux := found(); own || aux != nil {
		t.Errorf("finished: own %v, with %v", own, aux)
	}
}

// slowDriver takes a while to tell of its bounds. From the second time on it has one change.
type slowDriver struct {
	noDriver
	asked int
}

func (d *slowDriver) Bounds(context.Context) (Bounds, error) {
	time.Sleep(2 * stall)
	d.asked++
	return Bounds{Head: int64(min(6+d.asked, 8))}, nil
}

func (*slowDriver) Changes(context.Context, int64, int, bool) ([]Change, error) {
	return []Change{{Row: Row{Key: Key{Resource: "configmaps", Name: "a"}, Revision: 8}}}, nil
}

// TestFeedBehindASlowCommit: writes of another server are shown while an own commit is under way and does not
// end, even if hints come so fast, or answers so slowly, that there is another hint after each look.
func TestFeedBehindASlowCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hints := make(chan struct{}, 1)
		s := New(&slowDriver{}, Config{Clock: time.Now})
		s.applied.Store(7)
		s.underway.Store(&[]*write{{done: make(chan struct{})}})
		f := &feed{Store: s, sink: idleSink{}, hints: hints}
		feeding, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.run(feeding, feeding, stop) }()
		time.Sleep(3 * stall) // the first look, which needs no hint
		for range 1000 {
			hints <- struct{}{}
			if s.Applied() == 8 {
				break
			}
		}
		if stop(); s.Applied() != 8 {
			t.Error("the sink has nothing of it after a thousand looks")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// returnedDriver is a database that went back.
type returnedDriver struct {
	noDriver
	returns Rewinds
}

func (d *returnedDriver) RewindCount() int64             { return d.returns.Count }
func (d *returnedDriver) Rewinds() Rewinds               { return d.returns }
func (d *returnedDriver) RewindNotices() <-chan struct{} { return nil }

// countingSink counts what it is given.
type countingSink struct{ changes int }

func (s *countingSink) Apply(changes []Change) { s.changes += len(changes) }

// TestLostCommitsAreNotAcknowledged: a commit that the feed has not shown yet when the database loses it ends with an
// unknown outcome and is not shown. Commits that the database still has, and those after it went back, are acknowledged.
func TestLostCommitsAreNotAcknowledged(t *testing.T) {
	for _, c := range []struct {
		revision, applied int64
		again             bool // it went back once more before the feed took the batch
		lost              bool
	}{
		{revision: 11, applied: 10, lost: true},
		{revision: 11, applied: 1000, lost: true}, // reloaded in the meantime
		{revision: 1000, applied: 1000, lost: true},
		{revision: 5, applied: 1000},
		{revision: 1001, applied: 1000},
		{revision: 11, applied: 2000, again: true, lost: true},
		{revision: 1001, applied: 2000, again: true, lost: true},
		{revision: 2001, applied: 2000, again: true},
	} {
		d, sink := &returnedDriver{}, &countingSink{}
		f := &feed{Store: New(d, Config{Clock: time.Now}), sink: sink}
		f.applied.Store(c.applied)
		d.returns = Rewinds{Count: 1, Last: Rewind{Shown: 11, Found: 5, ContinuesAt: 1000}}
		if c.again {
			d.returns = Rewinds{Count: 2, Last: Rewind{Shown: 1000, Found: 1000, ContinuesAt: 2000}}
		}
		w := &write{txn: Txn{Ops: []Op{{Verb: Create, Key: Key{Resource: "pods", Name: "a"}}}}, done: make(chan struct{})}
		w.out = Outcome{Revisions: []int64{c.revision}, Created: []int64{c.revision}}
		if err := f.take(t.Context(), []*write{w}); err != nil {
			t.Fatal(err)
		}
		if !w.finished() || errors.Is(w.out.Err, ErrUncertain) != c.lost || c.lost && sink.changes != 0 {
			t.Errorf("revision %d behind %d: %v, and %d changes were shown; lost: %t", c.revision, c.applied, w.out.Err, sink.changes, c.lost)
		}
	}
}
