package h2

import (
	"time"

	"golang.org/x/net/http2"
)

// drainPing is the payload of the PING that follows the first GOAWAY of a drain.
var drainPing = [8]byte{'r', 'o', 'w', 'l', 'o', 'c', 'k', '.'}

const (
	// drainTimeout bounds how long GOAWAY waits for the ends of a connection's watches, and then how long the client has to
	// acknowledge the PING that follows it. Requests that arrive before are served.
	drainTimeout = 250 * time.Millisecond
	// closeDelay is the time for which an idle connection stays open after GOAWAY.
	closeDelay = time.Second
)

// drain begins to close the connection. If it has watches, GOAWAY waits for their ends (checkDrain).
func (c *conn) drain() {
	c.mu.Lock()
	if !c.drainAt.IsZero() || c.goneAway {
		c.mu.Unlock() // checkDrain sends what waits
		return
	}
	c.drainAt = time.Now()
	if !c.watchedLocked() {
		c.announceLocked(c.drainAt)
	}
	c.sendAndUnlock()
}

// watchedLocked reports whether a detached stream is open.
func (c *conn) watchedLocked() bool {
	for _, s := range c.streams {
		if s.detached {
			return true
		}
	}
	return false
}

// announceLocked sends GOAWAY without a last stream, and a PING. The server serves requests that the client sends before
// it acknowledges the PING (RFC 9113, 6.8). Both follow the ends of watches, at once but in a TLS record of their own: the
// h2 library of Python drops everything that it reads together with, or after, GOAWAY.
func (c *conn) announceLocked(now time.Time) {
	c.announcedAt = now
	if c.out != nil {
		c.split = len(*c.out)
	}
	c.framesLocked(func(f *http2.Framer) {
		_ = f.WriteGoAway(windowMax, http2.ErrCodeNo, nil) // the largest stream ID
		_ = f.WritePing(false, drainPing)
	})
}

// drainAcknowledged is called when the client has acknowledged the PING.
func (c *conn) drainAcknowledged() {
	c.mu.Lock()
	if !c.announcedAt.IsZero() {
		c.goAwayLocked()
		c.drained = true
	}
	c.sendAndUnlock()
}

// goAwayLocked sends GOAWAY with the last stream that is served, once.
func (c *conn) goAwayLocked() {
	if c.goneAway {
		return
	}
	c.goneAway, c.goAwayAt = true, time.Now()
	c.refusing.Store(true)
	c.framesLocked(func(f *http2.Framer) { _ = f.WriteGoAway(c.lastStream, http2.ErrCodeNo, nil) })
}

// goAway is goAwayLocked for callers without the lock.
func (c *conn) goAway() {
	c.mu.Lock()
	c.goAwayLocked()
	c.sendAndUnlock()
}

// checkDrain sends the ends of streams that wait for it, and closes a draining connection when it is idle.
func (c *conn) checkDrain(now time.Time) {
	c.mu.Lock()
	switch {
	case c.drainAt.IsZero() || c.goneAway:
	case c.announcedAt.IsZero():
		if !c.watchedLocked() || now.Sub(c.drainAt) >= drainTimeout {
			c.announceLocked(now)
		}
	case now.Sub(c.announcedAt) >= drainTimeout:
		c.goAwayLocked()
		c.drained = true
	}
	idle := len(c.streams) == 0 && c.handlers == 0 && c.out == nil && !c.flushing
	done := idle && c.goneAway && (c.drained || now.Sub(c.goAwayAt) >= closeDelay)
	c.sendAndUnlock()
	if done {
		c.close()
	}
}
