package rowlocktest

import (
	"context"
	"sync"
	"time"
)

// Clock is the clock of a server: it follows real time, and a test can advance it. It determines the times of objects,
// tokens and leases, the age of history and the expiry of events and Jobs, but not deadlines of requests and
// certificates.
type Clock struct {
	began time.Time

	mu    sync.Mutex
	ahead time.Duration
	moved chan struct{} // closed, and made again, whenever the clock is moved
	hook  func()        // called after each move; may be nil
}

func newClock() *Clock { return &Clock{began: time.Now(), moved: make(chan struct{})} }

func (c *Clock) copy() *Clock {
	other := newClock()
	c.mu.Lock()
	defer c.mu.Unlock()
	other.ahead = c.ahead
	return other
}

// Now returns the server's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Advance moves the clock forward. Work that is due starts soon, not before Advance returns: see Eventually.
func (c *Clock) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	c.mu.Lock()
	c.ahead += d
	close(c.moved)
	c.moved = make(chan struct{})
	hook := c.hook
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
}

// onMove registers a function to call after each move.
func (c *Clock) onMove(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hook = fn
}

// state returns how much time has passed, and the channel that the next move closes.
func (c *Clock) state() (time.Duration, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.began) + c.ahead, c.moved
}

// moves is closed by the next move.
func (c *Clock) moves() <-chan struct{} {
	_, moved := c.state()
	return moved
}

func (c *Clock) elapsed() time.Duration {
	d, _ := c.state()
	return d
}

// sleep waits until the clock has advanced by d.
func (c *Clock) sleep(ctx context.Context, d time.Duration) bool {
	now, moved := c.state()
	for end := now + d; now < end; now, moved = c.state() {
		timer := time.NewTimer(end - now)
		select {
		case <-timer.C:
		case <-moved:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
	return ctx.Err() == nil
}
