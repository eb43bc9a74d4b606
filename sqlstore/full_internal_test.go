package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// refusingDriver refuses a batch with a value that it cannot store.
type refusingDriver struct {
	noDriver
	batches int
	applied []string
}

func (d *refusingDriver) Apply(_ context.Context, batch []Txn, now time.Time) ([]Outcome, error) {
	d.batches++
	out := make([]Outcome, len(batch))
	for i := range batch {
		if string(batch[i].Ops[0].Value) == "bad" {
			return nil, errors.New("it cannot be stored")
		}
		out[i] = Outcome{Revisions: []int64{int64(i + 1)}, Created: []int64{1}, WrittenAt: now}
	}
	for i := range batch {
		d.applied = append(d.applied, batch[i].Ops[0].Key.Name)
	}
	return out, nil
}

// TestOneRefusedWrite: of a large batch, a write that the database refuses fails alone, and the others are committed in their order
// with few commits.
func TestOneRefusedWrite(t *testing.T) {
	const n, bad = 64, 37
	d := &refusingDriver{}
	s := New(d, Config{Clock: time.Now})
	s.own = make(chan []*write, n)
	var batch []*write
	var want []string
	for i := range n {
		op := Op{Verb: Create, Key: Key{Resource: "pods", Name: fmt.Sprint(i)}, Value: []byte("good")}
		if i == bad {
			op.Value = []byte("bad")
		} else {
			want = append(want, op.Key.Name)
		}
		batch = append(batch, &write{txn: Txn{Ops: []Op{op}}, done: make(chan struct{})})
	}
	s.commitBatch(t.Context(), batch)
	for i, w := range batch {
		if refused := w.out.Err != nil; refused != (i == bad) || refused != w.finished() {
			t.Errorf("write %d: %v, finished %t", i, w.out.Err, w.finished())
		}
	}
	if !slices.Equal(d.applied, want) || d.batches > 13 { // twice as many as n can be halved, and the first
		t.Errorf("%d commits of %q", d.batches, d.applied)
	}
}
