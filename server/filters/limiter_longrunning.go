package filters

import "sync"

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
