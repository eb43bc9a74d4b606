package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestMovedClock: whoever waits for a moment of the clock is woken when that is moved there,
// and goes on to wait when it is not moved so far.
func TestMovedClock(t *testing.T) {
	var ahead time.Duration
	var moved chan struct{}
	clock := func() time.Time { return time.Now().Add(ahead) }
	move := func(d time.Duration) { // while all others wait
		ahead += d
		old := moved
		moved = make(chan struct{})
		close(old)
		pass(0)
	}
	during(t, func(w *world) {
		w.set(jobsStorage, "a", "j", jobThatEnded(3600, ago(0)))
		w.set(requestsKey, "", "r", fmt.Sprintf(`{"metadata":{"creationTimestamp":%q}}`, ago(23*time.Hour)))
		pass(time.Second)
		move(59 * time.Minute)
		if w.read(jobsStorage, "a", "j") == "" || w.read(requestsKey, "", "r") == "" {
			t.Error("before their time")
		}
		move(2 * time.Minute)
		if w.read(jobsStorage, "a", "j") != "" || w.read(requestsKey, "", "r") != "" {
			t.Errorf("the clock was moved, and nobody has looked at it: %v %q, %q", w.took(), w.read(jobsStorage, "a", "j"), w.read(requestsKey, "", "r"))
		}
	}, func(w *world) func(context.Context) error {
		moved = make(chan struct{})
		moves := func() <-chan struct{} { return moved }
		jobs := &FinishedJobs{API: w, Cache: w.cache, Log: quiet, Clock: clock, Moves: moves}
		requests := &CertificateCleaner{API: w, Cache: w.cache, Log: quiet, Clock: clock, Moves: moves}
		return func(ctx context.Context) error {
			done := make(chan error, 1)
			go func() { done <- requests.Run(ctx) }()
			return errors.Join(jobs.Run(ctx), <-done)
		}
	})
}
