package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// The connection that listens for notifications is the session of this process: while it has its advisory lock, other
// processes see that this one runs. See leads.

// sessionWait bounds how long the first lead waits for the session.
const sessionWait = time.Second

// leadSession returns the key of the advisory lock of a process.
func leadSession(nonce string) int64 {
	n, _ := strconv.ParseUint(nonce, 16, 64) // of newNonce
	return int64(n)
}

// sessionOf returns the key of the lock that a holder has; ok is false if it has none.
func sessionOf(holder string) (key int64, ok bool) {
	nonce, number, _ := strings.Cut(holder, "/")
	if !strings.HasPrefix(number, "s") {
		return 0, false
	}
	n, err := strconv.ParseUint(nonce, 16, 64)
	return int64(n), err == nil
}

// beginSession records that a session is being made.
func (l *leads) beginSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil {
		l.session = make(chan struct{})
	}
}

// setSession records whether the session has its lock.
func (l *leads) setSession(has bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = has
	if has && !l.had {
		l.had = true
		close(l.session)
	}
}

// awaitSession waits for the first session, if one is being made.
func (l *leads) awaitSession(ctx context.Context) {
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session == nil {
		return
	}
	t := time.NewTimer(sessionWait)
	defer t.Stop()
	select {
	case <-session:
	case <-t.C:
	case <-ctx.Done():
	}
}
