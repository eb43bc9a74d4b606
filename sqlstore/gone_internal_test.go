package sqlstore

import (
	"context"
	"errors"
	"testing"
	"time"
)

// goneDriver cannot find out what became of a commit, because the file is gone, until it was called
// enough times.
type goneDriver struct {
	noDriver
	asked  int
	enough func() bool
}

func (d *goneDriver) Resolve(context.Context) ([]Outcome, bool, error) {
	if d.asked++; d.asked > 20 || d.enough() {
		return nil, false, nil
	}
	return nil, false, ErrGone
}

// TestGoneBehindACommit: a commit was in progress when the file disappeared. Later writers are refused at
// once, and do not wait for its outcome.
func TestGoneBehindACommit(t *testing.T) {
	d := &goneDriver{}
	s := New(d, Config{RetryFor: time.Hour})
	w := &write{done: make(chan struct{})}
	d.enough = func() bool {
		select {
		case <-w.done:
			return true
		default:
			return false
		}
	}
	s.queue.add(w)
	if _, committed, err := s.resolve(t.Context(), ErrUncertain); err != nil || committed {
		t.Fatal(committed, err)
	}
	if !d.enough() || !errors.Is(w.out.Err, ErrGone) {
		t.Errorf("after %d looks a write that came later has %v", d.asked, w.out.Err)
	}
}

// forgetful cannot find out what became of a commit, ever.
type forgetful struct{ noDriver }

func (forgetful) Resolve(context.Context) ([]Outcome, bool, error) { return nil, false, ErrUncertain }

// TestOutcomeThatIsNeverKnown: the store does not ask again, and later writers do not wait.
func TestOutcomeThatIsNeverKnown(t *testing.T) {
	s := New(forgetful{}, Config{RetryFor: time.Hour})
	w := &write{done: make(chan struct{})}
	s.queue.add(w)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, committed, err := s.resolve(ctx, ErrUncertain); !errors.Is(err, ErrUncertain) || committed || ctx.Err() != nil {
		t.Errorf("the outcome is %t, %v, after %v", committed, err, ctx.Err())
	}
	if w.finished() {
		t.Errorf("a later write has %v", w.out.Err)
	}
}
