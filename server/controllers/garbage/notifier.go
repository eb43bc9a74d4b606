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

func newNotifier() *notifier { return &notifier{wake: make(chan struct{}, 1)} }

// signal wakes the follower without naming a source.
func (b *notifier) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// notify signals that a source has changes.
func (b *notifier) notify(s *source) {
	b.mu.Lock()
	if !s.pending {
		s.pending = true
		b.pending = append(b.pending, s)
	}
	b.mu.Unlock()
	b.signal()
}

// take takes all sources with changes.
func (b *notifier) take() []*source {
	b.mu.Lock()
	defer b.mu.Unlock()
	pending := b.pending
	for _, s := range pending {
		s.pending = false
	}
	b.pending = nil
	return pending
}
