package watches

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClock: watches are rung when it is time, once, and those that were forgotten are not.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		add := func(in time.Duration) *stream {
			w := &stream{asks: true}
			w.state.Store(again) // somebody looks at it already
			c.set(w, time.Now().Add(in))
			return w
		}
		rings := func(w *stream) bool { return w.rang.Swap(false) }
		const lap = clockStep * clockSteps
		soon, same, never, late, far := add(30*time.Millisecond), add(clockStep), add(clockStep), add(lap-clockStep), add(3*lap+clockStep)
		c.forget(never)
		c.forget(never)
		for now, step := time.Duration(0), clockStep; now < 4*lap; now += step {
			time.Sleep(step)
			synctest.Wait()
			at := now + step
			for w, want := range map[*stream]time.Duration{soon: clockStep, same: clockStep, late: lap - clockStep, far: 3*lap + clockStep, never: -1} {
				if rang := rings(w); rang != (at == want) {
					t.Errorf("after %v: rang %v, want it after %v", at, rang, want)
				}
			}
		}
		if c.count != 0 {
			t.Errorf("%d are left", c.count)
		}
		last := add(0) // the clock has stood still
		time.Sleep(2 * clockStep)
		synctest.Wait()
		if !rings(last) {
			t.Error("it does not go on")
		}
	})
}
