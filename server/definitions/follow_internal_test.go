package definitions

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// A caller waits while another goroutine sets the catalogue: otherwise it would find that nothing is stale,
// and that a new definition is not served.
func TestFollowWaitsForWhoSetsTheCatalogue(t *testing.T) {
	catalogue := kinds.NewCatalogue(nil)
	f := New(catalogue, cache.New(catalogue), nil, slog.New(slog.DiscardHandler))
	f.Follow()
	f.mu.Lock()
	f.swapping.Store(true) // as one does that is in the midst of it
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Follow()
	}()
	select {
	case <-done:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	f.swapping.Store(false)
	f.mu.Unlock()
	<-done
}
