package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func jobThatEnded(ttl int, at string) string {
	return fmt.Sprintf(`{"spec":{"ttlSecondsAfterFinished":%d},"status":{"conditions":[{"type":"Complete","status":"True","lastTransitionTime":%q}]}}`, ttl, at)
}

func runJobs(settle time.Duration) func(*world) func(context.Context) error {
	return func(w *world) func(context.Context) error {
		return (&FinishedJobs{Chore{API: w, Cache: w.cache, Log: quiet, Clock: time.Now, Settle: settle}}).Run
	}
}

// TestFinishedJobs: a Job goes when its time has come, as it was when that was found out.
func TestFinishedJobs(t *testing.T) {
	const path = "DELETE /apis/batch/v1/namespaces/a/jobs/"
	during(t, func(w *world) {
		w.set(jobsStorage, "a", "j", jobThatEnded(60, ago(0)))
		w.set(jobsStorage, "a", "running", `{"spec":{"ttlSecondsAfterFinished":1},"status":{"conditions":[{"type":"Complete","status":"False","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		w.set(jobsStorage, "a", "for-good", `{"spec":{},"status":{"conditions":[{"type":"Complete","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		w.set(jobsStorage, "a", "timeless", `{"spec":{"ttlSecondsAfterFinished":0},"status":{"conditions":[{"type":"Failed","status":"True"}]}}`)
		w.set(jobsStorage, "a", "going", `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"ttlSecondsAfterFinished":0},"status":{"conditions":[{"type":"Failed","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		pass(59 * time.Second)
		if got := w.took(); len(got) > 0 {
			t.Errorf("too early: %v", got)
		}
		pass(time.Second)
		if got := w.took(); len(got) != 1 || got[0] != path+"j" {
			t.Errorf("when its time has come: %v", got)
		}

		// Somebody moves the time of a Job just before it would go.
		w.set(jobsStorage, "a", "moved", jobThatEnded(60, ago(0)))
		w.early = func(string, string) {
			w.early = nil
			w.set(jobsStorage, "a", "moved", jobThatEnded(120, ago(60*time.Second)))
		}
		pass(61 * time.Second)
		if got := w.took(); len(got) != 1 || w.read(jobsStorage, "a", "moved") == "" {
			t.Errorf("it went too early: %v", got)
		}
		pass(60 * time.Second)
		if got := w.took(); len(got) != 1 || w.read(jobsStorage, "a", "moved") != "" {
			t.Errorf("it did not go when it was to: %v", got)
		}
	}, runJobs(0))
}

// TestFinishedJobsThatStay: what cannot be deleted is tried again, later each time, and keeps
// nobody waiting.
func TestFinishedJobsThatStay(t *testing.T) {
	during(t, func(w *world) {
		w.refuse = func(_, path string) error {
			if path == "/apis/batch/v1/namespaces/a/jobs/held" {
				return errors.New("no")
			}
			return nil
		}
		w.set(jobsStorage, "a", "held", jobThatEnded(0, ago(0)))
		w.set(jobsStorage, "a", "held-not", jobThatEnded(0, ago(0)))
		pass(time.Minute)
		if got := w.took(); len(got) != 7 { // one that goes, and after 0, 1, 3, 7, 15 and 31 seconds
			t.Errorf("%d: %v", len(got), got)
		}
		if w.read(jobsStorage, "a", "held-not") != "" {
			t.Error("another Job waits for the one that cannot go")
		}
	}, runJobs(0))
}

// TestSettling: what changes is left alone for as long as it settles, and not for ever.
func TestSettling(t *testing.T) {
	during(t, func(w *world) {
		for i := range 12 {
			w.set(jobsStorage, "a", "j", jobThatEnded(i%2, ago(time.Hour)))
			if i < 10 && w.read(jobsStorage, "a", "j") == "" {
				t.Fatal("it did not settle")
			}
			pass(500 * time.Millisecond)
			if i == 9 {
				break
			}
		}
		pass(time.Millisecond)
		if w.read(jobsStorage, "a", "j") != "" {
			t.Error("it has settled for five seconds, and is there")
		}
	}, runJobs(time.Second))
}
