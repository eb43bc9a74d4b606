package h2

import (
	"context"
	"time"

	"golang.org/x/net/http2"
)

// drainPing is the payload of the PING that follows the first GOAWAY of a drain.
var drainPing = [8]byte{'r', 'o', 'w', 'l', 'o', 'c', 'k', '.'}

const (
	// drainTimeout is how long a client has to acknowledge that PING. Requests that arrive before are served.
	drainTimeout = 250 * time.Millisecond
	// closeDelay is how long an idle connection stays open after GOAWAY.
	closeDelay = time.Second
	drainRound = 5 * time.Millisecond
)

// GoAway tells all clients to send new requests elsewhere, and begins to close their connections, new ones included. Drain
// must follow: until then the ends of detached streams are not sent.
func (s *Server) GoAway() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.each(func(c *conn) { c.drain() })
}

// Drain closes all connections gracefully, new ones included. It waits until all responses are
// complete and all connections closed, or until ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	s.GoAway()
	ticker := time.NewTicker(drainRound)
	defer ticker.Stop()
	for s.Conns() > 0 {
		select {
		case <-ctx.Done():
			s.each(func(c *conn) { c.checkDrain(time.Now()) }) // sends the ends of the last streams
			return ctx.Err()
		case now := <-ticker.C:
			s.each(func(c *conn) { c.checkDrain(now) })
		}
	}
	return nil
}

// drain announces the end of the connection: GOAWAY without a last stream, and a PING. The server
// serves requests that the client sends before it acknowledges the PING (RFC 9113, 6.8).
func (c *conn) drain() {
	c.mu.Lock()
	if c.drainAt.IsZero() && !c.goneAway {
		c.drainAt = time.Now()
		c.framesLocked(func(f *http2.Framer) {
			_ = f.WriteGoAway(windowMax, http2.ErrCodeNo, nil) // the largest stream ID
			_ = f.WritePing(false, drainPing)
		})
	}
	c.sendAndUnlock()
}

// drainAcknowledged is called when the client has acknowledged the PING.
func (c *conn) drainAcknowledged() {
	c.mu.Lock()
	if !c.drainAt.IsZero() {
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
	if !c.drainAt.IsZero() && !c.goneAway && now.Sub(c.drainAt) >= drainTimeout {
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
