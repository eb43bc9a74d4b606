package cache_test

import (
	"errors"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestEndedWatcherIsNotAheadOfItsEvents: the revision that the last Take of an ended watcher returns covers no event
// that came after End. A client that resumes from it misses nothing.
func TestEndedWatcherIsNotAheadOfItsEvents(t *testing.T) {
	c, l := cache.New(podCatalogue()), newLog()
	defer c.Close()
	c.Apply([]sqlstore.Change{l.write("a", "p1", pod("p1", "n1", ""))})
	w, _ := c.WatchNow("pods", cache.Scope{})
	defer w.Stop()
	c.Apply([]sqlstore.Change{l.write("a", "p2", pod("p2", "n1", ""))})
	c.End("pods")
	c.Apply([]sqlstore.Change{l.write("a", "p3", pod("p3", "n1", ""))})
	got, upTo, err := w.Take(t.Context(), nil)
	if err != nil || len(got) != 1 || upTo != 2 {
		t.Errorf("%d events up to %d (%v), want the one of revision 2", len(got), upTo, err)
	}
	if _, _, err := w.Take(t.Context(), nil); !errors.Is(err, cache.ErrEnded) {
		t.Errorf("then %v", err)
	}
}

// TestEndReachesWatchersThatReadTheLog: End also ends a watcher that catches up from the store's log, once it
// has taken all events; one that begins afterwards goes on.
func TestEndReachesWatchersThatReadTheLog(t *testing.T) {
	c, l := cache.NewWith(podCatalogue(), cache.Config{RingEvents: 10}), newLog()
	defer c.Close()
	for range 100 {
		c.Apply([]sqlstore.Change{l.write("a", "p1", pod("p1", "n1", ""))})
	}
	watch := func() *cache.Watcher {
		w, err := c.Watch("pods", cache.Scope{}, 1, l)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	before := watch()
	defer before.Stop()
	c.End("pods")
	after := watch()
	defer after.Stop()
	for _, tc := range []struct {
		about string
		w     *cache.Watcher
		want  error
	}{{"before", before, cache.ErrEnded}, {"after", after, nil}} {
		events, last := 0, int64(0)
		for range 10 {
			got, upTo, err := tc.w.Take(t.Context(), nil)
			if err != nil {
				if !errors.Is(err, tc.want) || tc.want == nil {
					t.Errorf("a watcher that began %s End fails: %v", tc.about, err)
				}
				tc.want = nil
				break
			}
			events, last = events+len(got), upTo
		}
		if tc.want != nil || events != 99 || last != 100 {
			t.Errorf("a watcher that began %s End was given %d events up to %d, and then not %v", tc.about, events, last, tc.want)
		}
	}
}
