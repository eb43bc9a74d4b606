package cache_test

import (
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestCloseJoinsFanOut: when Close returns, no goroutine notifies watchers, or starts to.
func TestCloseJoinsFanOut(t *testing.T) {
	c := cache.New(nil)
	put := func(revision int64) {
		c.Apply([]sqlstore.Change{{Row: sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "ns", Name: "a"}, Revision: revision, Value: []byte(`{"metadata":{"name":"a"}}`)}}})
	}
	begun, release := make(chan struct{}), make(chan struct{})
	var running, notified atomic.Int64
	w, _ := c.WatchNow("configmaps", cache.Scope{})
	defer w.Stop()
	w.SetHooks(cache.HookFuncs(func() {
		running.Add(1)
		defer running.Add(-1)
		if notified.Add(1) == 1 {
			close(begun)
			<-release
		}
	}, func() {}))
	put(1)
	<-begun
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.Close()
		if n := running.Load(); n != 0 {
			t.Errorf("%d hooks run after Close", n)
		}
	}()
	close(release)
	<-closed
	put(2)
	if n := notified.Load(); n != 1 {
		t.Errorf("notified %d times", n)
	}
	if out, _, err := w.Take(t.Context(), nil); len(out) != 2 || err != nil {
		t.Errorf("%d deliveries, %v", len(out), err)
	}
}
