package sqlstore

import (
	"testing"
	"time"
)

// TestSleepBetweenClocks puts the process to sleep between the readings of its two
// clocks, which is no reason to doubt either.
func TestSleepBetweenClocks(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var slept time.Duration
	asleep := false
	c := &expiryClock{
		wall: func() time.Time {
			now := start.Add(slept)
			if asleep {
				slept, asleep = slept+6*time.Hour, false
			}
			return now
		},
		elapsed: func() time.Duration { return slept },
	}
	for range 3 {
		if got, want := c.now(), start.Add(slept); !got.Equal(want) {
			t.Fatalf("after %v it is %v, want %v", slept, got, want)
		}
		asleep = true
	}
}

// TestWallClock: wall clocks are compared without their monotonic readings, which would hide that the clock was set.
func TestWallClock(t *testing.T) {
	began := time.Now()
	c := &expiryClock{wall: time.Now, elapsed: func() time.Duration { return time.Since(began) }}
	for range 2 {
		for _, at := range []time.Time{c.now(), c.last, c.right} {
			if at != at.Round(0) {
				t.Errorf("%v has a monotonic reading", at)
			}
		}
	}
}
