package filters

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// unmoved is how long a write to a client may block before the request's place may be
// given to another request.
const unmoved = 10 * time.Millisecond

// limiter bounds how many requests run at once. Where all places are taken, a new request
// takes the place of one that waits for its client to read the answer. That one waits for
// another place before it goes on, ahead of requests that arrive later.
type limiter struct {
	limit int                  // of running requests
	share int                  // of running requests of one user
	most  int                  // of requests of one user, those that wait for their clients included; 0: no limit
	now   func() time.Duration // since some moment, and never 0
	runs  atomic.Int64         // len(running), for the metric

	mu       sync.Mutex
	running  []*activeRequest
	users    map[string]*usage
	resuming []*activeRequest // that lost their place and want one again, in the order in which they asked
}

// usage is what one user has of a limiter.
type usage struct {
	running int   // requests that have a place
	open    int   // requests that have begun and not ended, with a place or without
	bodies  int64 // bytes of the bodies of open requests
}

func newLimiter(limit, share, slow int, now func() time.Duration) *limiter {
	if share <= 0 {
		share = limit / 4
	}
	s := &limiter{limit: limit, share: min(max(share, 1), limit), now: now, users: make(map[string]*usage)}
	if slow > 0 {
		s.most = s.share + slow
	}
	return s
}

// acquire gives a request a place, or returns the limit that it would exceed.
// Administrators are bounded by the limit on all requests alone.
func (s *limiter) acquire(t *activeRequest) (limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[t.name]
	if u == nil {
		u = &usage{}
	}
	if !t.master {
		switch {
		case s.most > 0 && u.open >= s.most:
			return limitSlow
		case t.size > 0 && u.bodies+t.size > bodiesOfUser:
			return limitBodies
		case u.running >= s.share && !s.preempt(t.name, true):
			return limitShare
		}
	}
	for len(s.running) >= s.limit {
		if !s.preempt(t.name, false) {
			return limitServer
		}
		s.startResuming() // requests that have waited for longer go first
	}
	s.users[t.name] = u
	t.usage = u
	u.open++
	u.bodies += t.size
	s.start(t)
	return ""
}

// preempt takes the place of a request whose client does not read its answer; with own,
// only of a request of the named user. It says whether there was one. It and the methods
// up to startResuming are called with s.mu held.
func (s *limiter) preempt(name string, own bool) bool {
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

// start gives a request a place.
func (s *limiter) start(t *activeRequest) {
	t.at = len(s.running)
	s.running = append(s.running, t)
	s.runs.Store(int64(len(s.running)))
	t.usage.running++
}

// stop takes a request's place.
func (s *limiter) stop(t *activeRequest) {
	last := len(s.running) - 1
	s.running[t.at] = s.running[last]
	s.running[t.at].at = t.at
	s.running[last] = nil
	s.running = s.running[:last]
	s.runs.Store(int64(last))
	t.usage.running--
	t.at = -1
}

// fits says whether a request without a place can have one within the limits.
func (s *limiter) fits(t *activeRequest) bool {
	return len(s.running) < s.limit && (t.master || t.usage.running < s.share)
}

// startResuming gives free places to requests that wait for one.
func (s *limiter) startResuming() {
	for i := 0; i < len(s.resuming) && len(s.running) < s.limit; {
		t := s.resuming[i]
		if !s.fits(t) {
			i++
			continue
		}
		s.resuming = slices.Delete(s.resuming, i, i+1)
		s.start(t)
		close(t.in)
	}
}

// pause gives a request's place back while it waits for its client.
func (s *limiter) pause(t *activeRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at >= 0 {
		s.stop(t)
		s.startResuming()
	}
}

// resume waits until a request that has lost its place has one again. Its error is that
// of ctx.
func (s *limiter) resume(ctx context.Context, t *activeRequest) error {
	in := s.reacquire(t)
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
			s.retry(t)
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			if at := slices.Index(s.resuming, t); at >= 0 {
				s.resuming = slices.Delete(s.resuming, at, at+1)
			}
			return ctx.Err()
		}
	}
}

// reacquire gives a request a place again and returns nil, or queues it and returns what
// is closed once it has one.
func (s *limiter) reacquire(t *activeRequest) (in chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.taken.Store(false)
	if t.at >= 0 {
		return nil
	}
	if len(s.resuming) == 0 && s.fits(t) {
		s.start(t)
		return nil
	}
	in = make(chan struct{})
	t.in = in
	s.resuming = append(s.resuming, t)
	s.startResuming()
	return in
}

// retry looks for a place for a queued request by preempting another.
func (s *limiter) retry(t *activeRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at < 0 && s.preempt(t.name, !t.master && t.usage.running >= s.share) {
		s.startResuming()
	}
}

// release ends a request that acquire let in.
func (s *limiter) release(t *activeRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at >= 0 {
		s.stop(t)
	}
	u := t.usage
	u.bodies -= t.size
	if u.open--; u.open == 0 {
		delete(s.users, t.name)
	}
	s.startResuming()
}
