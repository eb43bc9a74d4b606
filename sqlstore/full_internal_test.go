package sqlstore

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fullDriver has room for values that are not large.
type fullDriver struct {
	noDriver
	batches int
}

func (d *fullDriver) Apply(_ context.Context, batch []Txn, now time.Time) ([]Outcome, error) {
	d.batches++
	out := make([]Outcome, len(batch))
	for i, txn := range batch {
		if len(txn.Ops[0].Value) >= LargeValue {
			return nil, ErrFull
		}
		out[i] = Outcome{Revisions: []int64{int64(i + 1)}, Created: []int64{1}, WrittenAt: now}
	}
	return out, nil
}

// TestNoRoomForOne: a large value for which a database has no room fails alone. A batch of small ones is not tried again.
func TestNoRoomForOne(t *testing.T) {
	d := &fullDriver{}
	s := New(d, Config{Clock: time.Now})
	writeOf := func(size int) *write {
		return &write{txn: Txn{Ops: []Op{{Verb: Create, Key: Key{Resource: "pods", Name: "a"}, Value: make([]byte, size)}}}, size: size, done: make(chan struct{})}
	}
	batch := []*write{writeOf(10), writeOf(LargeValue), writeOf(20)}
	s.commitBatch(t.Context(), batch)
	for i, w := range batch {
		if full := errors.Is(w.out.Err, ErrFull); full != (i == 1) || full != w.finished() {
			t.Errorf("write %d: %v, finished %t", i, w.out.Err, w.finished())
		}
	}
	s = New(&allFull{fullDriver: d}, Config{Clock: time.Now})
	d.batches = 0
	batch = []*write{writeOf(10), writeOf(20)}
	s.commitBatch(t.Context(), batch)
	for i, w := range batch {
		if !errors.Is(w.out.Err, ErrFull) || d.batches != 1 {
			t.Errorf("write %d of %d batches: %v", i, d.batches, w.out.Err)
		}
	}
}

// allFull has no room.
type allFull struct{ *fullDriver }

func (d *allFull) Apply(context.Context, []Txn, time.Time) ([]Outcome, error) {
	d.batches++
	return nil, ErrFull
}
