package sqlstore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// bounded is a driver that is asked for its bounds alone.
type bounded struct {
	noDriver
	asked chan struct{} // nil: it answers at once, else when the caller gives up
}

func (bounded) Exclusive() uint64 { return 0 }

func (d bounded) Bounds(ctx context.Context) (Bounds, error) {
	if d.asked == nil {
		return Bounds{Head: 7}, ctx.Err()
	}
	close(d.asked)
	<-ctx.Done()
	return Bounds{}, ctx.Err()
}

// answering answers calls of Head until end is called, as Run does that waits for others then.
func answering(t *testing.T, d Driver) (s *Store, end func()) {
	s = New(d, Config{Clock: time.Now})
	s.running.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.answerHeads(ctx)
	}()
	return s, func() {
		cancel()
		<-ended
	}
}

// TestHeadWhileRunEnds: a call that comes while Run ends, and nobody is there for it, is answered.
func TestHeadWhileRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := answering(t, bounded{})
		end()
		if head, err := s.Head(t.Context()); head != 7 || err != nil {
			t.Errorf("the head is %d, %v", head, err)
		}
	})
}

// TestHeadUnderWayAsRunEnds: the caller gets the error of a closed store, and not that of a context of the store.
func TestHeadUnderWayAsRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		s, end := answering(t, bounded{asked: asked})
		go func() {
			<-asked
			end()
		}()
		if _, err := s.Head(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestHeadOfASilentDatabase: the caller gets the error of a store that is not available, and not that of a
// deadline, which is the query's and not the caller's.
func TestHeadOfASilentDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := answering(t, bounded{asked: make(chan struct{})})
		defer end()
		if _, err := s.Head(t.Context()); !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}
