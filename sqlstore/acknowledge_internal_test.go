package sqlstore

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// deliveringSink is a sink that takes a while to deliver. given has the revisions of each Apply, and finished how many writes
// of the batch were acknowledged when it delivered each.
type deliveringSink struct {
	takes    time.Duration
	batch    []*write
	given    [][]int64
	finished []int
}

func (s *deliveringSink) Apply(changes []Change) {
	var revisions []int64
	for _, c := range changes {
		revisions = append(revisions, c.Revision)
	}
	s.given = append(s.given, revisions)
}

func (s *deliveringSink) Deliver(most time.Duration) {
	n := 0
	for _, w := range s.batch {
		if w.finished() {
			n++
		}
	}
	s.finished = append(s.finished, n)
	time.Sleep(min(s.takes, most))
}

// committed makes a batch of writes of one row each, as a driver has committed it. Those of refused have failed.
func committed(n, size int, refused ...int) (batch []*write) {
	revision := int64(0)
	for i := range n {
		w := &write{txn: Txn{Ops: []Op{{Verb: Create, Key: Key{Resource: "pods", Name: fmt.Sprint(i)}}}}, size: size, done: make(chan struct{})}
		if slices.Contains(refused, i) {
			w.finish(Outcome{Err: ErrFull})
		} else {
			revision++
			w.out = Outcome{Revisions: []int64{revision}, Created: []int64{revision}}
		}
		batch = append(batch, w)
	}
	return batch
}

// TestCrowdsAreAcknowledgedAfterDelivery: of a large group no write is acknowledged before its change has gone out, and later
// writes wait for none but those of their part. The time for all of it is bounded, whatever the sink does.
func TestCrowdsAreAcknowledgedAfterDelivery(t *testing.T) {
	for _, c := range []struct {
		name      string
		writes    int
		size      int
		refused   []int
		takes     time.Duration
		delivered []int // how many writes were finished at each delivery
		parts     int
		lasts     time.Duration
	}{
		{name: "few", writes: crowd - 1, takes: time.Second, parts: 1},
		{name: "a crowd", writes: crowd, takes: time.Millisecond, delivered: []int{0}, parts: 1, lasts: time.Millisecond},
		{name: "many", writes: 3*partRows - 1, takes: time.Millisecond, delivered: []int{0, partRows, 2 * partRows}, parts: 3, lasts: 3 * time.Millisecond},
		{name: "large", writes: 64, size: partBytes / 16, takes: time.Millisecond, delivered: []int{0, 16, 32, 48}, parts: 4, lasts: 4 * time.Millisecond},
		{name: "refused", writes: 2*partRows + 2, refused: []int{0, partRows + 1}, takes: time.Millisecond, delivered: []int{2, partRows + 2}, parts: 2, lasts: 2 * time.Millisecond},
		{name: "stuck", writes: 8 * partRows, takes: time.Hour, delivered: []int{0}, parts: 2, lasts: deliverFor},
		{name: "slow", writes: 8 * partRows, takes: deliverFor / 2, delivered: []int{0, partRows}, parts: 3, lasts: deliverFor},
	} {
		synctest.Test(t, func(t *testing.T) {
			batch := committed(c.writes, c.size, c.refused...)
			sink := &deliveringSink{takes: c.takes, batch: batch}
			f := &feed{Store: New(&goneDriver{}, Config{Clock: time.Now}), sink: sink}
			began := time.Now()
			if err := f.take(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != c.lasts {
				t.Errorf("%s: writers waited %v, want %v", c.name, took, c.lasts)
			}
			if !slices.Equal(sink.finished, c.delivered) || len(sink.given) != c.parts {
				t.Errorf("%s: acknowledged before each delivery: %v, want %v; %d parts, want %d", c.name, sink.finished, c.delivered, len(sink.given), c.parts)
			}
			for i, revision := range slices.Concat(sink.given...) {
				if revision != int64(i+1) {
					t.Fatalf("%s: the sink got revision %d in place of %d", c.name, revision, i+1)
				}
			}
			for i, w := range batch {
				if !w.finished() || (w.out.Err != nil) != slices.Contains(c.refused, i) {
					t.Errorf("%s: write %d: %t, %v", c.name, i, w.finished(), w.out.Err)
				}
			}
			if want := int64(c.writes - len(c.refused)); f.applied.Load() != want {
				t.Errorf("%s: applied %d, want %d", c.name, f.applied.Load(), want)
			}
		})
	}
}
