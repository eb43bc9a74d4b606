package seats

import (
	"context"
	"slices"
)

// Pause gives a request's seats back while it waits for its client.
func (s *Scheduler) Pause(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.seated {
		return
	}
	now := s.catchUp()
	r.Level.advance(now)
	s.stop(r, now)
	if r.usage != nil {
		r.usage.running--
	}
	s.dispatch(r.Level, now, false)
}

// Resume waits until a request that has lost its seats has some again. Its error is that
// of ctx.
func (s *Scheduler) Resume(ctx context.Context, r *Request) error {
	ready := s.ask(r)
	if ready == nil {
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.catchUp()
	r.Level.advance(now)
	if s.withdraw(r) {
		s.dispatch(r.Level, now, false) // others may have waited behind it
	}
	return ctx.Err()
}

// withdraw cancels a request's wait for the seats that it has lost, and reports whether it waited. It is
// called with the level advanced to now.
func (s *Scheduler) withdraw(r *Request) (waited bool) {
	l := r.Level
	at := slices.Index(l.resuming, r)
	if at < 0 {
		return false
	}
	l.resuming = slices.Delete(l.resuming, at, at+1)
	l.wanted -= r.Seats
	s.waiters--
	return true
}

// ask assigns seats to a request again and returns nil, or returns a channel that is closed when it has some.
func (s *Scheduler) ask(r *Request) (ready chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.seated || !r.in {
		return nil
	}
	now, l := s.catchUp(), r.Level
	s.list(l)
	l.advance(now)
	if slices.Contains(l.resuming, r) {
		return r.ready // its body and its answer have different goroutines
	}
	if len(l.resuming) == 0 && l.room(r.Seats) && (r.usage == nil || r.Master || !s.full(r)) {
		s.again(r, now)
		return nil
	}
	r.ready = make(chan struct{})
	l.resuming = append(l.resuming, r)
	l.wanted += r.Seats
	s.waiters++
	s.dispatch(l, now, true)
	s.arm()
	return r.ready
}

// Sending marks the beginning of a write to the client, or of another wait, and Sent its end: if the seats were taken in the
// meantime, Sent waits for others.
func (s *Scheduler) Sending(r *Request) { r.writing.Store(int64(s.now())) }

// Sent ends the state that Sending began.
func (s *Scheduler) Sent(ctx context.Context, r *Request) error {
	if r.writing.Swap(0) == taken {
		return s.Resume(ctx, r)
	}
	return nil
}
