package filters

import "sync"

// longRunningLimiter bounds the open long-running requests, of all users and of each. 0 means no limit.
type longRunningLimiter struct {
	most, share int

	mu    sync.Mutex
	open  int
	users map[string]int
}

func newLongRunningLimiter(most, share int) *longRunningLimiter {
	return &longRunningLimiter{most: most, share: share, users: make(map[string]int)}
}

// longRunningRequest is an open request that counts.
type longRunningRequest struct {
	by   *longRunningLimiter
	user string
}

// acquire counts a request of a user, or returns nil if it is one too many. Requests of administrators count, but are not
// refused.
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
