package main

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0:05.12": 5120 * time.Millisecond, "00:01:07": 67 * time.Second, "2-03:00:01": 51*time.Hour + time.Second, "": 0,
	} {
		if got := clock(text).Round(time.Millisecond); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
