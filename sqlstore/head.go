package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// heads collects the calls of Head that wait for the next query.
type heads struct {
	mu   sync.Mutex
	next *headCall
	over bool // no more queries are sent
	wake chan struct{}
}

// headCall is one query and all calls that wait for its answer.
type headCall struct {
	done     chan struct{}
	revision int64
	err      error
}

// Head returns a revision no older than any write acknowledged, by any server,
// before the call. Concurrent callers share one query; an exclusive driver needs none.
func (s *Store) Head(ctx context.Context) (int64, error) {
	if !s.running.Load() {
		b, err := s.Bounds(ctx)
		return b.Head, err
	}
	if e := s.driver.Exclusive(); e != 0 && e == s.exclusive.Load() {
		return s.head.Load(), nil
	}
	s.heads.mu.Lock()
	if s.heads.over { // Run is about to end
		s.heads.mu.Unlock()
		b, err := s.Bounds(ctx)
		return b.Head, err
	}
	call := s.heads.next
	if call == nil {
		call = &headCall{done: make(chan struct{})}
		s.heads.next = call
	}
	s.heads.mu.Unlock()
	select {
	case s.heads.wake <- struct{}{}:
	default:
	}
	select {
	case <-call.done:
		return call.revision, call.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// askHeadFor is longer than drivers wait for a silent database: their error is more specific.
const askHeadFor = 6 * time.Second

// answerHeads sends one query for all waiting calls. Calls that arrive while a query is in progress wait for the
// next one: its answer may be older than the call.
func (s *Store) answerHeads(ctx context.Context) {
	for {
		select {
		case <-s.heads.wake:
		case <-ctx.Done():
			s.answer(s.takeHeads(true), Bounds{}, ErrClosed)
			return
		}
		call := s.takeHeads(false)
		if call == nil {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, askHeadFor)
		exclusive := s.driver.Exclusive() // before the read
		b, err := s.driver.Bounds(asking)
		switch { // the error is not due to the callers' contexts
		case err != nil && ctx.Err() != nil:
			err = ErrClosed
		case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnavailable):
			err = fmt.Errorf("%w: the database was asked for its head: %v", ErrUnavailable, err)
		}
		cancel()
		s.answer(call, b, err)
		if err == nil {
			s.exclusive.Store(exclusive)
		}
	}
}

// takeHeads takes the waiting calls; over means that later ones get no answer.
func (s *Store) takeHeads(over bool) *headCall {
	s.heads.mu.Lock()
	defer s.heads.mu.Unlock()
	call := s.heads.next
	s.heads.next, s.heads.over = nil, over
	return call
}

func (s *Store) answer(call *headCall, b Bounds, err error) {
	if call == nil {
		return
	}
	if err == nil {
		s.saw(b)
	}
	call.revision, call.err = b.Head, err
	close(call.done)
}
