package filters

import (
	"net/http"
	"sync"

	"github.com/rowlock/rowlock/server/request"
)

// longRunningLimiter bounds how many long-running requests are open, of all users and of
// each. A limit of 0 is none.
type longRunningLimiter struct {
	most, share int

	mu    sync.Mutex
	open  int
	users map[string]int
}

func newLongRunningLimiter(most, share int) *longRunningLimiter {
	return &longRunningLimiter{most: most, share: share, users: make(map[string]int)}
}

// longRunningRequest is an open request that is counted.
type longRunningRequest struct {
	by   *longRunningLimiter
	user string
}

// acquire counts one more request of a user, or returns nil where that is one too many.
// Administrators are counted, but not refused.
func (l *longRunningLimiter) acquire(user string, master bool) *longRunningRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !master && (l.most > 0 && l.open >= l.most || l.share > 0 && l.users[user] >= l.share) {
		return nil
	}
	l.open++
	l.users[user]++
	return &longRunningRequest{l, user}
}

// release ends the request.
func (h *longRunningRequest) release() {
	l := h.by
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.users[h.user]--; l.users[h.user] == 0 {
		delete(l.users, h.user)
	}
}

// acquireLongRunning counts a long-running request for its user, or refuses it and returns
// nil. A watch has seats besides, until it has begun.
func (f *InFlight) acquireLongRunning(w http.ResponseWriter, r *http.Request) *openRequest {
	s := request.From(r.Context())
	of, name, watch := f.connects, limitConnects, s.Info.Verb == "watch"
	if watch {
		of, name = f.watches, limitWatches
	}
	h := of.acquire(userOf(s, r), masters(s))
	if h == nil {
		if watch {
			f.classify(w, s)
		}
		f.refuse(w, s, name, false)
		return nil
	}
	if watch && !f.beginWatch(w, r) {
		h.release()
		return nil
	}
	return &openRequest{h, s}
}

// openRequest is a long-running request that was let in.
type openRequest struct {
	counted *longRunningRequest
	scope   *request.Scope
}

// returned releases a request whose handler has returned, or has that done at its end.
func (o *openRequest) returned() {
	if o.scope.Outlives() {
		o.scope.AtEnd(o.release)
		return
	}
	o.release()
}

func (o *openRequest) release() {
	o.scope.Begun()
	o.counted.release()
}

// beginWatch has a watch wait for its seats, which its scope gives back as soon as it has
// begun, or refuses it. Where requests are not classified it needs none.
func (f *InFlight) beginWatch(w http.ResponseWriter, r *http.Request) bool {
	if f.Flows.Plain() {
		return true
	}
	t := f.ask(nil, r, f.classify(w, request.From(r.Context())))
	t.Begins = true
	if err := f.enter(w, t); err != nil {
		return t.Master
	}
	t.scope.Seat = &watchSeat{f, t}
	return true
}

// watchSeat is a request.Seat.
type watchSeat struct {
	filter  *InFlight
	request *activeRequest
}

func (s *watchSeat) Sending()    { s.request.seats.Sending(&s.request.Request) }
func (s *watchSeat) Sent() error { return s.request.sent(nil) }
func (s *watchSeat) Leave()      { s.filter.leave(s.request) }
