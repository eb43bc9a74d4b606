package cache

import (
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/fair"
)

// streamShared is the state that the streams of all storages share.
type streamShared struct {
	revision atomic.Int64 // the newest one applied
	// backfilling is closed once Backfill has ended; nil: it has not begun.
	backfilling atomic.Pointer[chan struct{}]
	replays     *fair.Gate // entered while a page of the store's log is read for a watcher
	// largeReplays is entered from then until the watcher has sent a page with large objects.
	largeReplays *fair.Gate

	mu      sync.Mutex
	closed  bool
	closing chan struct{}  // closed by close
	running sync.WaitGroup // goroutines that notify watchers, and those that index labels; added to under mu, unless closed
}

// start starts a goroutine that close waits for, unless the cache is closed.
func (h *streamShared) start(run func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.running.Go(run)
	}
}

func (h *streamShared) close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.closing)
	}
	h.mu.Unlock()
	h.running.Wait()
}

// isClosed reports whether a goroutine that takes long should stop.
func (h *streamShared) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}
