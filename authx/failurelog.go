package authx

import (
	"sync"
	"time"
)

// repeatAfter is the least time between two equal log lines about a fault that was gone in
// between.
const repeatAfter = time.Minute

// FailureLog reports that something does not work: once when that begins, and not for every
// request that meets it. It may be reported again once it has worked in between.
type FailureLog struct {
	Report func(error)
	Clock  func() time.Time // nil: time.Now

	mu       sync.Mutex
	broken   bool
	reported time.Time
}

// Note records the outcome of a use; nil: it works.
func (c *FailureLog) Note(err error) {
	if c.Report == nil {
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
	if c.broken || !c.reported.IsZero() && now.Sub(c.reported) < repeatAfter {
		return
	}
	c.broken, c.reported = true, now
	c.Report(err)
}
