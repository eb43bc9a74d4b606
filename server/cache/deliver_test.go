package cache_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestDeliver: it returns once all watchers with hooks have been notified of the last Apply, without the rest between two
// rounds; one that never returns from its hook holds it up as long as allowed; and where nobody waits it returns at once.
func TestDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cache.New(nil)
		revision := int64(0)
		put := func(resources ...string) {
			var changes []sqlstore.Change
			for _, r := range resources {
				revision++
				changes = append(changes, sqlstore.Change{Row: sqlstore.Row{Key: sqlstore.Key{Resource: r, Namespace: "ns", Name: fmt.Sprint(revision)}, Revision: revision, Value: []byte(`{"metadata":{"name":"a"}}`)}})
			}
			c.Apply(changes)
		}
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
				if n != 5*(round+1) || notified[i][n-1] < revision-2 {
					t.Fatalf("round %d: of resource %d watchers were notified of %v, newest revision %d", round, i, notified[i], revision)
				}
			}
		}
		takes.Store(int64(time.Minute))
		put("configmaps")
		if took := deliver(time.Second); took != time.Second {
			t.Errorf("with a watcher that is stuck: %v", took)
		}
		put("secrets") // of which nobody is notified at that moment
		if took := deliver(time.Hour); took != 5*time.Minute {
			t.Errorf("beside a watcher that is stuck: %v", took)
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
