package filters

import "sync"

// lasting counts requests that last, for all users and for each. A limit of 0 is none.
type lasting struct {
	most, share int

	mu    sync.Mutex
	open  int
	users map[string]int
}

func newLasting(most, share int) *lasting {
	return &lasting{most: most, share: share, users: make(map[string]int)}
}

// held is a request that is counted.
type held struct {
	by   *lasting
	user string
}

// begin counts one more of a user; nil: that would be one too many. Administrators are
// counted, but not refused.
func (l *lasting) begin(user string, master bool) *held {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !master && (l.most > 0 && l.open >= l.most || l.share > 0 && l.users[user] >= l.share) {
		return nil
	}
	l.open++
	l.users[user]++
	return &held{l, user}
}

// end takes it away again.
func (h *held) end() {
	l := h.by
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.users[h.user]--; l.users[h.user] == 0 {
		delete(l.users, h.user)
	}
}
