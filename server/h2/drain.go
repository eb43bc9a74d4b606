package h2

import (
	"context"
	"time"

	"golang.org/x/net/http2"
)

// partingMark is what a ping says that asks a client whether it knows that it is to go away.
var partingMark = [8]byte{'r', 'o', 'w', 'l', 'o', 'c', 'k', '.'}

const (
	// lastWords is how long a client has to answer that ping; what it sends until then is served.
	lastWords = 250 * time.Millisecond
	// lingering is how long a connection stays open on which nothing is under way any more, after
	// its client was told to go away, or what it did wrong.
	lingering  = time.Second
	drainRound = 5 * time.Millisecond
	endless    = 1<<31 - 1 // the stream of a client that may go on for now
)

// Drain tells all clients to go away, and those that connect from now on. It waits until what is
// under way has been answered and all connections are closed, or until ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.each(func(c *conn) { c.farewell() })
	ticker := time.NewTicker(drainRound)
	defer ticker.Stop()
	for s.Conns() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-ticker.C:
			s.each(func(c *conn) { c.lookDraining(now) })
		}
	}
	return nil
}

// farewell tells the client that it is about to be told to go away, and asks whether it has read
// that: what it sends before it answers is served, and afterwards it sends no more requests.
func (c *conn) farewell() {
	c.mu.Lock()
	if c.drainAt.IsZero() && !c.goneAway {
		c.drainAt = time.Now()
		c.framesLocked(func(f *http2.Framer) {
			_ = f.WriteGoAway(endless, http2.ErrCodeNo, nil) // a buffer takes everything
			_ = f.WritePing(false, partingMark)
		})
	}
	c.sendAndUnlock()
}

// parted says that the client has answered. Requests that it sends from now on are ignored.
func (c *conn) parted() {
	c.mu.Lock()
	if !c.drainAt.IsZero() {
		c.goAwayLocked(http2.ErrCodeNo)
		c.drained = true
	}
	c.sendAndUnlock()
}

// goAwayLocked tells the client to go away, once, and up to which request it is served.
func (c *conn) goAwayLocked(code http2.ErrCode) {
	if c.goneAway {
		return
	}
	c.goneAway, c.goAwayAt = true, time.Now()
	c.ignores.Store(true)
	c.framesLocked(func(f *http2.Framer) { _ = f.WriteGoAway(c.newest, code, nil) }) // a buffer takes everything
}

// lookDraining goes on with a connection whose client is to go.
func (c *conn) lookDraining(now time.Time) {
	c.mu.Lock()
	if !c.drainAt.IsZero() && !c.goneAway && now.Sub(c.drainAt) >= lastWords {
		c.goAwayLocked(http2.ErrCodeNo)
		c.drained = true
	}
	done := c.goneAway && (c.drained || now.Sub(c.goAwayAt) >= lingering) && c.idleLocked()
	c.sendAndUnlock()
	if done {
		c.hangUp()
	}
}

// idleLocked says that nothing is under way and that everything said is with the kernel.
func (c *conn) idleLocked() bool {
	return len(c.streams) == 0 && c.handlers == 0 && c.out == nil && !c.pumping
}
