package workloads

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

func jobThatEnded(ttl int, at string) string {
	return fmt.Sprintf(`{"spec":{"ttlSecondsAfterFinished":%d},"status":{"conditions":[{"type":"Complete","status":"True","lastTransitionTime":%q}]}}`, ttl, at)
}

func runJobs(settle time.Duration) func(*controllertest.FakeAPI) func(context.Context) error {
	return func(w *controllertest.FakeAPI) func(context.Context) error {
		return (&FinishedJobs{reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog, Debounce: settle}}).Run
	}
}

// TestFinishedJobs: a Job goes when its time has come, as it was when that was found out.
func TestFinishedJobs(t *testing.T) {
	const path = "DELETE /apis/batch/v1/namespaces/a/jobs/"
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set(jobsStorage, "a", "j", jobThatEnded(60, controllertest.Ago(0)))
		w.Set(jobsStorage, "a", "running", `{"spec":{"ttlSecondsAfterFinished":1},"status":{"conditions":[{"type":"Complete","status":"False","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		w.Set(jobsStorage, "a", "for-good", `{"spec":{},"status":{"conditions":[{"type":"Complete","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		w.Set(jobsStorage, "a", "timeless", `{"spec":{"ttlSecondsAfterFinished":0},"status":{"conditions":[{"type":"Failed","status":"True"}]}}`)
		w.Set(jobsStorage, "a", "going", `{"metadata":{"deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"ttlSecondsAfterFinished":0},"status":{"conditions":[{"type":"Failed","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`)
		controllertest.Advance(59 * time.Second)
		if got := w.Calls(); len(got) > 0 {
			t.Errorf("too early: %v", got)
		}
		controllertest.Advance(time.Second)
		if got := w.Calls(); len(got) != 1 || got[0] != path+"j" {
			t.Errorf("when its time has come: %v", got)
		}

		// Somebody moves the time of a Job just before it would go.
		w.Set(jobsStorage, "a", "moved", jobThatEnded(60, controllertest.Ago(0)))
		w.Early = func(string, string) {
			w.Early = nil
			w.Set(jobsStorage, "a", "moved", jobThatEnded(120, controllertest.Ago(60*time.Second)))
		}
		controllertest.Advance(61 * time.Second)
		if got := w.Calls(); len(got) != 1 || w.Read(jobsStorage, "a", "moved") == "" {
			t.Errorf("it went too early: %v", got)
		}
		controllertest.Advance(60 * time.Second)
		if got := w.Calls(); len(got) != 1 || w.Read(jobsStorage, "a", "moved") != "" {
			t.Errorf("it did not go when it was to: %v", got)
		}
	}, runJobs(0))
}

// TestFinishedJobsThatStay: a Job that cannot be deleted is tried again with a growing backoff, and does not delay
// others.
func TestFinishedJobsThatStay(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Refuse = func(_, path string) error {
			if path == "/apis/batch/v1/namespaces/a/jobs/held" {
				return errors.New("no")
			}
			return nil
		}
		w.Set(jobsStorage, "a", "held", jobThatEnded(0, controllertest.Ago(0)))
		w.Set(jobsStorage, "a", "held-not", jobThatEnded(0, controllertest.Ago(0)))
		controllertest.Advance(time.Minute)
		if got := w.Calls(); len(got) != 7 { // one that goes, and after 0, 1, 3, 7, 15 and 31 seconds
			t.Errorf("%d: %v", len(got), got)
		}
		if w.Read(jobsStorage, "a", "held-not") != "" {
			t.Error("another Job waits for the one that cannot go")
		}
	}, runJobs(0))
}

// TestSettling: an object that changes is left alone until it has settled, but not forever.
func TestSettling(t *testing.T) {
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		for i := range 12 {
			w.Set(jobsStorage, "a", "j", jobThatEnded(i%2, controllertest.Ago(time.Hour)))
			if i < 10 && w.Read(jobsStorage, "a", "j") == "" {
				t.Fatal("it did not settle")
			}
			controllertest.Advance(500 * time.Millisecond)
			if i == 9 {
				break
			}
		}
		controllertest.Advance(time.Millisecond)
		if w.Read(jobsStorage, "a", "j") != "" {
			t.Error("it has settled for five seconds, and is there")
		}
	}, runJobs(time.Second))
}
