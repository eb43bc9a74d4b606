package seats

import (
	"slices"
	"time"
)

// start gives a request seats. All following functions are called with the level advanced to now.
func (s *Scheduler) start(r *Request, now time.Duration, work float64) {
	l := r.Level
	r.seated, r.since = true, now
	l.running++
	l.used += r.Seats
	l.demand.peak(float64(l.used + l.wanted))
	r.Flow.Seats += r.Seats
	if r.queue != nil {
		l.charge(r, work)
	}
	r.at = len(s.running)
	s.running = append(s.running, r)
	if !r.exempt {
		s.passKinds(now)
		s.runs[r.Class].Add(1)
	}
}

// dispatched counts a request that runs for the first time.
func (s *Scheduler) dispatched(r *Request) {
	r.Level.dispatched++
	r.Flow.Dispatched++
	r.Flow.Running++
}

// stop takes a request's seats.
func (s *Scheduler) stop(r *Request, now time.Duration) {
	l := r.Level
	r.seated = false
	l.running--
	l.used -= r.Seats
	r.Flow.Seats -= r.Seats
	if r.queue != nil {
		l.settle(r, now-r.since)
	}
	last := len(s.running) - 1
	s.running[r.at] = s.running[last]
	s.running[r.at].at = r.at
	s.running[last] = nil
	s.running = s.running[:last]
	if !r.exempt {
		s.passKinds(now)
		s.runs[r.Class].Add(-1)
	}
}

// full reports whether a user has the maximum number of running requests.
func (s *Scheduler) full(r *Request) bool {
	share := s.limits.Share[r.Class]
	return share > 0 && r.usage.running >= share
}

// preempt takes the seats of a request that waits, as for a client that does not read its answer: one of the same level or, with
// own, of the same user. It reports whether there was one.
func (s *Scheduler) preempt(l *Level, r *Request, own bool, now time.Duration) bool {
	for _, t := range s.running {
		since := t.stuck(now)
		if since == 0 || t.exempt || (own && (t.usage == nil || t.User != r.User || t.Class != r.Class)) || (!own && t.Level != l) {
			continue
		}
		if !t.lose(since) {
			continue
		}
		t.Level.advance(now)
		s.stop(t, now)
		if t.usage != nil {
			t.usage.running--
		}
		if t.Level != l {
			s.dispatch(t.Level, now, false)
		}
		return true
	}
	return false
}

// dispatch gives free seats to waiting requests: first to those that had some,
// then to those in queues. With take, seats of requests whose clients have stopped count as
// free.
func (s *Scheduler) dispatch(l *Level, now time.Duration, take bool) {
	if l.waiting == 0 && len(l.resuming) == 0 {
		return
	}
	l.advance(now)
	s.resumeSome(l, now)
	for take && len(l.resuming) > 0 && s.preempt(l, l.resuming[0], false, now) {
		s.resumeSome(l, now)
	}
	if s.held(l) {
		return
	}
	for {
		r := l.next()
		if r == nil {
			return
		}
		if !l.room(r.Seats) {
			if !take || !s.preempt(l, r, false, now) {
				r.Flow.Unplaced++
				return
			}
			continue
		}
		l.dequeue(r)
		s.passKinds(now)
		s.queued[r.Class]--
		s.waiters--
		r.waited = now - r.arrived
		s.start(r, now, r.work())
		r.Flow.Waiting--
		r.Flow.WaitingSeats -= r.Seats
		s.dispatched(r)
		close(r.ready)
	}
}

// resumeSome gives free seats to requests that have lost theirs.
func (s *Scheduler) resumeSome(l *Level, now time.Duration) {
	for i := 0; i < len(l.resuming); {
		r := l.resuming[i]
		if !l.room(r.Seats) {
			return
		}
		if r.usage != nil && !r.Master && s.full(r) {
			i++
			continue
		}
		l.resuming = slices.Delete(l.resuming, i, i+1)
		s.waiters--
		l.wanted -= r.Seats
		s.again(r, now)
		close(r.ready)
	}
}

// held reports whether the free seats of a level are reserved for a request that has lost its own and needs
// more than are free: otherwise requests that need few would overtake it forever.
func (s *Scheduler) held(l *Level) bool {
	for _, r := range l.resuming {
		if r.usage == nil || r.Master || !s.full(r) {
			return true // otherwise it would have them already
		}
	}
	return false
}

// again gives a request seats that had lost them. If its body needed them while a write is still in progress,
// they can be taken again as if the write had begun now.
func (s *Scheduler) again(r *Request, now time.Duration) {
	r.writing.CompareAndSwap(taken, int64(now))
	if r.usage != nil {
		r.usage.running++
	}
	if r.queue != nil {
		r.Level.begin(r.queue)
	}
	s.start(r, now, float64(r.Seats)*serviceTime)
}
