package seats

import (
	"context"
	"time"
)

// Enter gives a request seats, possibly after a wait in a queue, or returns the reason why not: the error is
// a Refusal. Leave must follow unless there is an error.
func (s *Scheduler) Enter(ctx context.Context, r *Request) error {
	ready, err := s.enter(r)
	if ready == nil || err != nil {
		return err
	}
	patience := time.NewTimer(r.Patience)
	defer patience.Stop()
	select {
	case <-ready:
		return nil
	case <-patience.C:
		return s.giveUp(r, TimedOut)
	case <-ctx.Done():
		return s.giveUp(r, Cancelled)
	}
}

// enter gives a request seats, or a place in a queue and a channel that is closed when it has seats.
func (s *Scheduler) enter(r *Request) (ready chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.catchUp()
	r.arrived, r.since = now, now
	r.Seats = max(r.Seats, 1)
	l := r.Level
	s.list(l)
	if l.config.Kind == Exempt {
		r.in, r.exempt = true, true
		l.advance(now)
		s.start(r, now, 0)
		s.dispatched(r)
		return nil, nil
	}
	if err := s.admit(r, now); err != nil {
		return nil, err
	}
	l.advance(now)
	if err := s.find(r, now); err != nil {
		l.rejected++
		r.Flow.reject(err)
		return nil, err
	}
	r.in = true
	s.open(r)
	if r.ready == nil {
		work := 0.0
		if r.queue != nil {
			work = r.work()
		}
		s.start(r, now, work)
		s.dispatched(r)
		return nil, nil
	}
	l.enqueue(r)
	s.passKinds(now)
	s.queued[r.Class]++
	r.Length = r.queue.length
	s.waiters++
	l.demand.peak(float64(l.used + l.wanted))
	r.Flow.Waiting++
	r.Flow.WaitingSeats += r.Seats
	s.dispatch(l, now, true)
	s.arm()
	return r.ready, nil
}

// admit returns the limit of its user that a request would exceed.
func (s *Scheduler) admit(r *Request, now time.Duration) error {
	if r.Begins || r.Master {
		return nil
	}
	var has usage
	if u := s.users[user{r.User, r.Class}]; u != nil {
		has = *u
	}
	open, share := s.limits.Open[r.Class], s.limits.Share[r.Class]
	switch {
	case open > 0 && has.open >= open:
		return Slow
	case r.Size > 0 && s.limits.Bodies > 0 && has.bodies+r.Size > s.limits.Bodies:
		return Bodies
	case s.isLarge(r) && s.large+r.Size > s.limits.LargeBodies:
		return Large
	case share > 0 && has.running >= share && !s.preempt(r.Level, r, true, now):
		return Share
	}
	return nil
}

// isLarge reports whether the body of a request counts as large.
func (s *Scheduler) isLarge(r *Request) bool {
	return s.limits.LargeBodies > 0 && r.Size > s.limits.Large
}

// open counts a request for its user.
func (s *Scheduler) open(r *Request) {
	if r.Begins {
		return
	}
	u := s.users[user{r.User, r.Class}]
	if u == nil {
		if last := len(s.spare) - 1; last >= 0 {
			u, s.spare = s.spare[last], s.spare[:last]
		} else {
			u = &usage{}
		}
		s.users[user{r.User, r.Class}] = u
	}
	u.open++
	u.running++
	u.bodies += r.Size
	if s.isLarge(r) {
		s.large += r.Size
	}
	r.usage = u
}

// find finds seats for a request or, by making its channel, queues it.
func (s *Scheduler) find(r *Request, now time.Duration) error {
	l := r.Level
	if l.config.Kind == Reject {
		s.resumeSome(l, now)
		for s.held(l) || !l.room(r.Seats) {
			if !s.preempt(l, r, false, now) {
				return Concurrency
			}
			s.resumeSome(l, now) // requests that have waited longer go first
		}
		return nil
	}
	r.queue = l.deal(r.Hash)
	if l.waiting == 0 && !s.held(l) && l.room(r.Seats) {
		l.begin(r.queue)
		return nil
	}
	if l.used >= l.limit && r.queue.length >= l.config.Length {
		if s.dispatch(l, now, true); l.used >= l.limit && r.queue.length >= l.config.Length {
			return QueueFull
		}
	}
	r.ready, r.queued = make(chan struct{}), true
	return nil
}

// giveUp removes a request from its queue, unless it has received seats.
func (s *Scheduler) giveUp(r *Request, why Refusal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.catchUp()
	if r.seated {
		return nil
	}
	l := r.Level
	l.advance(now)
	l.dequeue(r)
	l.end(r.queue)
	s.passKinds(now)
	s.queued[r.Class]--
	s.waiters--
	r.waited = now - r.arrived
	r.in = false
	r.Flow.Waiting--
	r.Flow.WaitingSeats -= r.Seats
	r.Flow.reject(why)
	if why == TimedOut {
		l.timedOut++
	} else {
		l.cancelled++
	}
	if r.usage != nil {
		r.usage.running--
		s.close(r)
	}
	s.dispatch(l, now, false) // others may have waited behind it
	return why
}
