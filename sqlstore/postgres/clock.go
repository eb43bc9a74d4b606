package postgres

import (
	"sync"
	"time"
)

// clock derives the database's time from the last reading and the monotonic time
// since. It does not depend on this machine's wall clock.
type clock struct {
	mu    sync.Mutex
	at    time.Time // here, with its monotonic reading
	there time.Time // by the database
}

// now returns the database's time; before the first reading, this machine's.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.reckon(time.Now())
}

// reckon returns the database's time at a moment here.
func (c *clock) reckon(here time.Time) time.Time { return c.there.Add(here.Sub(c.at)) }

// update takes a time that the database read between two moments here. If the
// current estimate is possible it stays, so that a slow answer changes nothing.
func (c *clock) update(there, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.at.IsZero() && !c.reckon(asked).After(there) && !c.reckon(answered).Before(there) {
		return
	}
	c.at, c.there = asked.Add(answered.Sub(asked)/2), there
}
