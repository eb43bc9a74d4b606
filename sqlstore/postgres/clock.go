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

// update takes a time that the database read between two moments here. A possible estimate stays, so that a
// slow answer changes nothing. One that drifted becomes the nearest possible time, which a slow answer does
// not move far; one that is wrong by more than the answer took, because a clock was set, becomes the middle.
func (c *clock) update(there, asked, answered time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	took := answered.Sub(asked)
	latest, now := there.Add(took), c.reckon(answered) // of there and latest, both at answered
	switch {
	case c.at.IsZero() || now.Before(there.Add(-took)) || now.After(latest.Add(took)):
		now = there.Add(took / 2)
	case now.Before(there):
		now = there
	case now.After(latest):
		now = latest
	default:
		return
	}
	c.at, c.there = answered, now
}
