package filters

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// unmoved is how long a client may take nothing of an answer before the request's
// place is given to another that wants one.
const unmoved = 10 * time.Millisecond

// slots are the places of the requests that run. Who comes and finds none free takes
// that of a request which waits for its client to take the answer; that one gets
// another when it goes on, before those who come later.
type slots struct {
	limit int                  // that run
	share int                  // of a user
	most  int                  // of a user, those that wait for their clients included; 0: no limit
	now   func() time.Duration // since some moment, and never 0
	runs  atomic.Int64         // len(running), for the metric

	mu      sync.Mutex
	running []*ticket
	users   map[string]*usage
	back    []*ticket // that want to go on, in the order of their coming
}

// usage is what a user has of them.
type usage struct {
	running, under int // under way: those that wait for their clients included
	bodies         int64
}

func newSlots(limit, share, slow int, now func() time.Duration) *slots {
	if share <= 0 {
		share = limit / 4
	}
	s := &slots{limit: limit, share: min(max(share, 1), limit), now: now, users: make(map[string]*usage)}
	if slow > 0 {
		s.most = s.share + slow
	}
	return s
}

// enter gives a request a place, or says which limit is in the way. Administrators
// have no share.
func (s *slots) enter(t *ticket) (limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[t.name]
	if u == nil {
		u = &usage{}
	}
	if !t.master {
		switch {
		case s.most > 0 && u.under >= s.most:
			return limitSlow
		case t.size > 0 && u.bodies+t.size > bodiesOfUser:
			return limitBodies
		case u.running >= s.share && !s.free(t.name, true):
			return limitShare
		}
	}
	for len(s.running) >= s.limit {
		if !s.free(t.name, false) {
			return limitServer
		}
		s.wake() // those who came before
	}
	s.users[t.name] = u
	t.usage = u
	u.under++
	u.bodies += t.size
	s.run(t)
	return ""
}

// free takes the place of a request whose client takes nothing, one of the same user if
// asked for. s.mu is held, as for all that follow up to wake.
func (s *slots) free(name string, own bool) bool {
	now := s.now()
	for _, t := range s.running {
		since := time.Duration(t.writing.Load())
		if since != 0 && now-since >= unmoved && (!own || t.name == name) {
			s.stop(t)
			t.taken.Store(true)
			return true
		}
	}
	return false
}

func (s *slots) run(t *ticket) {
	t.at = len(s.running)
	s.running = append(s.running, t)
	s.runs.Store(int64(len(s.running)))
	t.usage.running++
}

func (s *slots) stop(t *ticket) {
	last := len(s.running) - 1
	s.running[t.at] = s.running[last]
	s.running[t.at].at = t.at
	s.running[last] = nil
	s.running = s.running[:last]
	s.runs.Store(int64(last))
	t.usage.running--
	t.at = -1
}

// may says whether one that was away can go on.
func (s *slots) may(t *ticket) bool {
	return len(s.running) < s.limit && (t.master || t.usage.running < s.share)
}

// wake lets those go on that can.
func (s *slots) wake() {
	for i := 0; i < len(s.back) && len(s.running) < s.limit; {
		t := s.back[i]
		if !s.may(t) {
			i++
			continue
		}
		s.back = slices.Delete(s.back, i, i+1)
		s.run(t)
		close(t.in)
	}
}

// pause gives a request's place back while it waits for its client.
func (s *slots) pause(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at >= 0 {
		s.stop(t)
		s.wake()
	}
}

// resume waits for a place, for one that has none. Errors: that of ctx.
func (s *slots) resume(ctx context.Context, t *ticket) error {
	in := s.ask(t)
	if in == nil {
		return nil
	}
	again := time.NewTicker(unmoved)
	defer again.Stop()
	for {
		select {
		case <-in:
			return nil
		case <-again.C:
			s.look(t)
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			if at := slices.Index(s.back, t); at >= 0 {
				s.back = slices.Delete(s.back, at, at+1)
			}
			return ctx.Err()
		}
	}
}

// ask gives a place, or what is closed when there is one.
func (s *slots) ask(t *ticket) (in chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.taken.Store(false)
	if t.at >= 0 {
		return nil
	}
	if len(s.back) == 0 && s.may(t) {
		s.run(t)
		return nil
	}
	in = make(chan struct{})
	t.in = in
	s.back = append(s.back, t)
	s.wake()
	return in
}

// look takes a place for one that waits, if others do not use theirs.
func (s *slots) look(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at < 0 && s.free(t.name, !t.master && t.usage.running >= s.share) {
		s.wake()
	}
}

// leave ends what enter began.
func (s *slots) leave(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at >= 0 {
		s.stop(t)
	}
	u := t.usage
	u.bodies -= t.size
	if u.under--; u.under == 0 {
		delete(s.users, t.name)
	}
	s.wake()
}
