package cache_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestRounds counts the rounds in which events reach 25 watchers with hooks: the first event is delivered at once, those
// within the 10 ms after it together, and none is lost.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New(nil)
		defer c.Close()
		revision := int64(0)
		put := func(size int) {
			revision++
			c.Apply([]sqlstore.Change{{Row: sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: fmt.Sprint("c", revision)}, Revision: revision,
				Value: fmt.Appendf(nil, `{"metadata":{"name":"c%d"},"data":{"a":"%s"}}`, revision, strings.Repeat("x", size))}}})
		}
		const watchers = 25
		var rounds, events atomic.Int64
		for i := range watchers {
			w, _ := c.WatchNow("configmaps", cache.Scope{})
			defer w.Stop()
			w.SetHooks(cache.HookFuncs(func() {
				out, _, err := w.Take(t.Context(), nil)
				if err != nil {
					t.Error(err)
				}
				events.Add(int64(len(out)))
				if i == 0 {
					rounds.Add(1)
				}
			}, func() {}))
		}
		want := func(when string, r, e int64) {
			t.Helper()
			synctest.Wait()
			if rounds.Load() != r || events.Load() != e*watchers {
				t.Errorf("%s: %d rounds, %d deliveries; want %d, %d", when, rounds.Load(), events.Load(), r, e*watchers)
			}
		}
		put(100)
		want("an event after a silence", 1, 1)
		for range 9 {
			put(100)
			time.Sleep(time.Millisecond)
		}
		want("during the rest", 1, 1)
		time.Sleep(time.Millisecond)
		want("after the rest", 2, 10)
		time.Sleep(10 * time.Millisecond)
		put(100)
		want("after another silence", 3, 11)
		for range 4 {
			put(10 << 10)
		}
		want("many bytes", 4, 15)
		put(100)
		want("the rest after them", 4, 15)
		time.Sleep(10 * time.Millisecond)
		want("its end", 5, 16)
		put(100)
		put(100) // Close waits for no rest
	})
}
