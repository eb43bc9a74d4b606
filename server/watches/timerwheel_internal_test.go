package watches

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// TestClock: watches are rung when it is time, once, and those that were forgotten are not.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c timerWheel
		add := func(in time.Duration) *stream {
			w := &stream{callsWebhook: true}
			w.state.Store(again) // another goroutine checks it already
			c.set(w, time.Now().Add(in))
			return w
		}
		rings := func(w *stream) bool { return w.wheelFired.Swap(false) }
		const lap = wheelTick * wheelSlots
		soon, same, never, late, far := add(30*time.Millisecond), add(wheelTick), add(wheelTick), add(lap-wheelTick), add(3*lap+wheelTick)
		c.forget(never)
		c.forget(never)
		for now, step := time.Duration(0), wheelTick; now < 4*lap; now += step {
			time.Sleep(step)
			synctest.Wait()
			at := now + step
			for w, want := range map[*stream]time.Duration{soon: wheelTick, same: wheelTick, late: lap - wheelTick, far: 3*lap + wheelTick, never: -1} {
				if alarmed := rings(w); alarmed != (at == want) {
					t.Errorf("after %v: rang %v, want it after %v", at, alarmed, want)
				}
			}
		}
		if c.count != 0 {
			t.Errorf("%d are left", c.count)
		}
		last := add(0) // the wheel has stood still
		time.Sleep(2 * wheelTick)
		synctest.Wait()
		if !rings(last) {
			t.Error("it does not go on")
		}
	})
}

// ending is a stream that only ends.
type ending struct{ wire.Stream }

func (ending) Close(bool) {}
func (ending) Over()      {}

// TestClockForgetsWhatEnds: a watch that ends while a goroutine writes to it after the wheel has fired is not
// left on the dial.
func TestClockForgetsWhatEnds(t *testing.T) {
	watcher, _ := cache.New(kinds.NewCatalogue(builtin.Resources())).WatchNow("configmaps", cache.Scope{})
	begun, ended := make(chan struct{}), make(chan struct{})
	w := &stream{
		server: &Server{}, request: &answers.Request{Scope: request.NewScope(nil, time.Now())}, watcher: watcher, out: &directOutput{stream: ending{}},
		bookmarks: true, end: time.Now().Add(time.Hour), unlink: func() bool { close(begun); return true },
	}
	w.request.Scope.Detach(func(any) {})
	w.server.wheel.set(w, w.end)
	w.mu.Lock() // the writer
	go func() {
		defer close(ended)
		w.endAs(nil)
	}()
	<-begun
	time.Sleep(50 * time.Millisecond) // until it waits
	w.server.wheel.forget(w)
	w.wheelFired.Store(true)
	w.checkTimer()
	w.mu.Unlock()
	<-ended
	if n := w.server.wheel.count; n != 0 {
		t.Errorf("%d are left on the dial", n)
	}
}
