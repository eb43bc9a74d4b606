package postgres

import (
	"sync"
	"time"
)

// clock knows the database's time from what it was last told, and from how much time
// has passed here since. What this machine's wall clock is set to has no part in it.
type clock struct {
	mu    sync.Mutex
	at    time.Time // here, with its monotonic reading
	there time.Time // by the database
}

// now is the database's time; this machine's before any was told.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.reckon(time.Now())
}

// reckon is the database's time at a moment here.
func (c *clock) reckon(here time.Time) time.Time { return c.there.Add(here.Sub(c.at)) }

// told takes a time that the database read between two moments here. If what was
// reckoned may be right it stays, so that a slow answer moves nothing.
func (c *clock) told(there, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && !c.reckon(asked).After(there) && !c.reckon(answered).Before(there) {
		return
	}
	c.at, c.there = asked.Add(answered.Sub(asked)/2), there
}
