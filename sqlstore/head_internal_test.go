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

// TestHeadWhileRunEnds: a call that arrives while Run ends is answered.
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

// alone is a driver that no other process shares. It has a commit that the sink does not have yet.
type alone struct{ noDriver }

func (alone) Exclusive() uint64 { return 1 }

func (alone) Changes(context.Context, int64, int, bool) ([]Change, error) {
	return []Change{{Row: Row{Key: Key{Resource: "pods", Name: "a"}, Revision: 8}}}, nil
}

func (alone) Past(context.Context, Key, int64, int) ([]Row, error) {
	return []Row{{Key: Key{Resource: "pods", Name: "a"}, Revision: 9}}, nil
}

// TestHeadOfWhatWasShown: a client that was shown a revision out of the table, by a watch or a history, finds it in what it
// lists next, also where Head needs no query.
func TestHeadOfWhatWasShown(t *testing.T) {
	s := New(alone{}, Config{Clock: time.Now})
	s.running.Store(true)
	s.exclusive.Store(1)
	if _, err := s.Changes(t.Context(), 0, 10, false); err != nil {
		t.Fatal(err)
	}
	if head, err := s.Head(t.Context()); head != 8 || err != nil {
		t.Errorf("after revision 8 was shown, the head is %d, %v", head, err)
	}
	if _, err := s.Past(t.Context(), Key{}, 0, 10); err != nil {
		t.Fatal(err)
	}
	if head, err := s.Head(t.Context()); head != 9 || err != nil {
		t.Errorf("after revision 9 was shown, the head is %d, %v", head, err)
	}
}
