package garbage

import (
	"context"
	"sync"
	"sync/atomic"
)

// fed says up to which revision the graph knows everything.
type fed struct {
	upTo atomic.Int64

	mu      sync.Mutex
	waiting []*waiter
}

type waiter struct {
	revision int64
	done     chan struct{}
}

// knows returns once the graph knows of everything up to a revision.
func (c *collection) knows(ctx context.Context, revision int64) error {
	if c.fed.upTo.Load() >= revision {
		return nil
	}
	w := &waiter{revision, make(chan struct{})}
	c.fed.mu.Lock()
	c.fed.waiting = append(c.fed.waiting, w)
	c.fed.mu.Unlock()
	c.bell.signal()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// catchUp takes changes of all sources until the graph knows what somebody waits for.
func (c *collection) catchUp(ctx context.Context) {
	c.fed.mu.Lock()
	waiting := c.fed.waiting
	c.fed.waiting = nil
	c.fed.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	newest := int64(0)
	for _, w := range waiting {
		newest = max(newest, w.revision)
	}
	if newest > c.fed.upTo.Load() {
		if c.Cache.WaitFor(ctx, newest) != nil {
			return
		}
		c.follow(ctx) // a kind may be served that nobody has heard of yet
		for _, s := range c.sources.byStorage {
			for s.given < newest && ctx.Err() == nil {
				c.take(ctx, s)
			}
		}
		c.fed.upTo.Store(newest)
	}
	for _, w := range waiting {
		close(w.done)
	}
}
