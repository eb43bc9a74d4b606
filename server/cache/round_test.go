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

// create has a cache take one batch of changes that create an object, with data of a size, in each of the resources.
func create(c *cache.Cache, size int, resources ...string) {
	var changes []sqlstore.Change
	for i, r := range resources {
		revision := c.Revision() + int64(i) + 1
		changes = append(changes, sqlstore.Change{Row: sqlstore.Row{
			Key: sqlstore.Key{Resource: r, Namespace: "ns", Name: fmt.Sprint("c", revision)}, Revision: revision,
			Value: fmt.Appendf(nil, `{"metadata":{"name":"c%d"},"data":{"a":"%s"}}`, revision, strings.Repeat("x", size)),
		}})
	}
	c.Apply(changes)
}

// TestRounds counts the rounds in which events reach 25 watchers with hooks: the first event is delivered at once, those
// within the 10 ms after it together, and none is lost.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New(nil)
		defer c.Close()
		put := func(size int) { create(c, size, "configmaps") }
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

// TestDeliver: it returns once all watchers with hooks have been notified of the last Apply, without the rest between two
// rounds; a hook that never returns delays it for the allowed time; without watchers it returns at once.
func TestDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New(nil)
		put := func(resources ...string) { create(c, 100, resources...) }
		var notified [2][]int64 // up to which revision, by resource
		var takes atomic.Int64
		for i, resource := range []string{"configmaps", "secrets"} {
			for range 5 {
				w, _ := c.WatchNow(resource, cache.Scope{})
				defer w.Stop()
				w.SetHooks(cache.HookFuncs(func() {
					time.Sleep(time.Duration(takes.Load()))
					_, at, err := w.Take(t.Context(), nil)
					if err != nil {
						t.Error(err)
					}
					notified[i] = append(notified[i], at)
				}, func() {}))
			}
		}
		deliver := func(most time.Duration) time.Duration {
			began := time.Now()
			c.Deliver(most)
			return time.Since(began)
		}
		if took := deliver(time.Hour); took != 0 {
			t.Errorf("before there was anything: %v", took)
		}
		for round := range 3 {
			put("configmaps", "secrets", "pods")
			if took := deliver(time.Hour); took != 0 {
				t.Errorf("round %d: %v", round, took)
			}
			for i, n := range []int{len(notified[0]), len(notified[1])} {
				if n != 5*(round+1) || notified[i][n-1] < c.Revision()-2 {
					t.Fatalf("round %d: of resource %d watchers were notified of %v, newest revision %d", round, i, notified[i], c.Revision())
				}
			}
		}
		takes.Store(int64(time.Minute))
		put("configmaps")
		if took := deliver(time.Second); took != time.Second {
			t.Errorf("with a watcher that is stuck: %v", took)
		}
		put("secrets") // none of which is notified at that moment
		if took := deliver(time.Hour); took != 5*time.Minute {
			t.Errorf("with a watcher of another resource that is stuck: %v", took)
		}
		if put("pods"); deliver(time.Hour) != 0 {
			t.Error("it waits for watchers of another resource")
		}
		time.Sleep(time.Hour)
		put("configmaps")
		synctest.Wait() // they are being notified
		if took := deliver(time.Hour); took != 5*time.Minute {
			t.Errorf("during a round: %v", took)
		}
		c.Close()
		if put("configmaps"); deliver(time.Hour) != 0 {
			t.Error("it waits although nobody is notified any more")
		}
	})
}
