package authx

import (
	"sync"
	"time"
)

// complainAgain is the least time between two equal log lines about a fault that was gone in
// between.
const complainAgain = time.Minute

// Complaint reports that something does not work: once when that begins, and not for every
// request that meets it. It may be said again once it has worked in between.
type Complaint struct {
	Say   func(error)
	Clock func() time.Time // nil: time.Now

	mu     sync.Mutex
	broken bool
	said   time.Time
}

// Note records the outcome of a use; nil: it works.
func (c *Complaint) Note(err error) {
	if c.Say == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.broken = false
		return
	}
	now := time.Now()
	if c.Clock != nil {
		now = c.Clock()
	}
	if c.broken || !c.said.IsZero() && now.Sub(c.said) < complainAgain {
		return
	}
	c.broken, c.said = true, now
	c.Say(err)
}
