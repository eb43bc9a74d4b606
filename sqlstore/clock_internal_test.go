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
