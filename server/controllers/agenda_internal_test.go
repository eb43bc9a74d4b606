package controllers

import (
	"fmt"
	"testing"
	"time"
)

// TestAgenda: a key is due once it has settled, later after failures, and once however often
// it is asked for.
func TestAgenda(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	a := &agenda{settle: time.Second, first: 2 * time.Second, longest: 6 * time.Second}
	due := func(now time.Duration) (names []string) {
		a.ripen(at(now))
		for {
			key, ok := a.take()
			if !ok {
				return names
			}
			names = append(names, key.name)
		}
	}
	expect := func(now time.Duration, want ...string) {
		t.Helper()
		if got := due(now); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("after %v: %v, want %v", now, got, want)
		}
	}
	x, y := objectKey{name: "x"}, objectKey{name: "y"}
	const ms = time.Millisecond

	a.touch(x, at(0))
	a.touch(y, at(500*ms))
	a.touch(x, at(600*ms)) // it settles anew
	expect(1500*ms, "y")
	expect(1600*ms, "x")
	a.forget(x)
	a.forget(y)
	if len(a.all) != 0 {
		t.Errorf("%d keys are left", len(a.all))
	}

	for i := range 20 { // but not for ever
		a.touch(x, at(2000*ms+time.Duration(i)*500*ms))
		if i == 9 {
			expect(6999 * ms)
		}
		if i == 10 {
			expect(7000*ms, "x")
			a.forget(x)
		}
	}
	a.drop(x)
	expect(100 * time.Second)

	a.touch(x, at(0))
	expect(time.Second, "x")
	now := time.Second
	for _, rest := range []time.Duration{2, 4, 6, 6} { // seconds
		a.fail(x, at(now))
		a.touch(x, at(now)) // what changes does not make it any quicker
		expect(now + rest*time.Second - ms)
		now += rest * time.Second
		expect(now, "x")
	}
	a.forget(x)

	a.until(x, at(time.Minute))
	expect(time.Minute - ms)
	a.touch(x, at(0)) // it may be due sooner now
	expect(time.Second, "x")
	a.rest(x, at(0), time.Minute)
	a.touch(x, at(0))
	expect(time.Minute - ms)
	expect(time.Minute, "x")
	a.rest(x, at(0), time.Minute)
	expect(time.Minute) // nobody asked
	a.rest(x, at(0), time.Minute)
	a.until(x, at(time.Second))
	a.touch(x, at(2*time.Second))
	expect(time.Minute - ms)
	expect(time.Minute, "x")
	a.forget(x)
	if len(a.all) != 0 || len(a.heap) != 0 {
		t.Errorf("%d keys are left, %d wait", len(a.all), len(a.heap))
	}

	a.until(x, at(2*time.Second))
	a.until(y, at(time.Second))
	a.ripen(at(time.Minute))
	a.touch(x, at(0)) // it is in the line already
	a.drop(y)         // too late: it is looked at
	expect(time.Minute, "y", "x")
}
