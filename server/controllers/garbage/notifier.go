package garbage

import (
	"sync"

	"github.com/rowlock/rowlock/server/cache"
)

// source is a storage that is followed.
type source struct {
	kind    uint32 // its number in the graph
	storage string
	watcher *cache.Watcher
	upTo    int64 // the revision up to which everything was taken
	pending bool  // guarded by the notifier
}

// notifier wakes the goroutine that follows the cache. It has no goroutine, and notify never blocks.
type notifier struct {
	wake chan struct{}

	mu      sync.Mutex
	pending []*source // the sources with changes, each once
}

// signal wakes the follower without naming a source.
func (n *notifier) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// notify signals that a source has changes.
func (n *notifier) notify(s *source) {
	n.mu.Lock()
	if !s.pending {
		s.pending = true
		n.pending = append(n.pending, s)
	}
	n.mu.Unlock()
	n.signal()
}

// take returns the sources with changes, and forgets them.
func (n *notifier) take() []*source {
	n.mu.Lock()
	defer n.mu.Unlock()
	pending := n.pending
	for _, s := range pending {
		s.pending = false
	}
	n.pending = nil
	return pending
}
