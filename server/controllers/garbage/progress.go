package garbage

import (
	"context"
	"sync"
	"sync/atomic"
)

// progress tracks the revision up to which the graph has all changes.
type progress struct {
	signal func() // wakes the follower, which feeds the graph
	upTo   atomic.Int64

	mu      sync.Mutex
	waiting []*waiter
}

type waiter struct {
	revision int64
	done     chan struct{}
}

// waitFor waits until the graph has all changes up to a revision.
func (f *progress) waitFor(ctx context.Context, revision int64) error {
	if f.upTo.Load() >= revision {
		return nil
	}
	w := &waiter{revision, make(chan struct{})}
	f.mu.Lock()
	f.waiting = append(f.waiting, w)
	f.mu.Unlock()
	f.signal()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
