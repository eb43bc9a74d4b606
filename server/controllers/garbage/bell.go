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
	given   int64 // the revision up to which everything was taken
	rung    bool  // guarded by the bell
}

// bell wakes the goroutine that follows the cache. It has no goroutine, and ring never blocks.
type bell struct {
	rings chan struct{}

	mu   sync.Mutex
	rung []*source // the sources with changes, each once
}

func newBell() *bell { return &bell{rings: make(chan struct{}, 1)} }

// signal wakes the follower without naming a source.
func (b *bell) signal() {
	select {
	case b.rings <- struct{}{}:
	default:
	}
}

// ring signals that a source has changes.
func (b *bell) ring(s *source) {
	b.mu.Lock()
	if !s.rung {
		s.rung = true
		b.rung = append(b.rung, s)
	}
	b.mu.Unlock()
	b.signal()
}

// answer takes all sources that have rung.
func (b *bell) answer() []*source {
	b.mu.Lock()
	defer b.mu.Unlock()
	rung := b.rung
	for _, s := range rung {
		s.rung = false
	}
	b.rung = nil
	return rung
}
