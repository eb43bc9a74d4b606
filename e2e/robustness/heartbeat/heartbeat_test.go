package heartbeat_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/robustness/heartbeat"
)

const ms = time.Millisecond

// TestOwn: a process that does not run for longer than Late is found, for as long as it should have run.
func TestOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began, stood := time.Now(), time.Duration(0)
		jumps := map[int]time.Duration{5: 400 * ms, 10: 2 * time.Second, 20: 600 * ms}
		calls := 0
		now := func() time.Duration {
			if calls++; calls%2 == 0 { // after a sleep
				stood += jumps[calls/2]
			}
			if calls == 60 {
				stop()
			}
			return time.Since(began) + stood
		}
		var found []time.Duration
		heartbeat.Own(ctx, now, func(begin, end time.Duration) { found = append(found, begin, end) })
		want := []time.Duration{900 * ms, 2900 * ms, 3400 * ms, 4000 * ms} // behind 10 and 20 sleeps of 50 ms
		if diff := cmp.Diff(want, found); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOther: a process that answers late stood still; one that is down did not.
func TestOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now()
		answers := []struct {
			after time.Duration
			err   error
		}{{after: 2 * ms}, {after: 3 * time.Second}, {4 * time.Second, errors.New("connection reset")}, {after: 500 * ms}, {after: 750 * ms}}
		asked := 0
		ask := func(ctx context.Context) error {
			if asked == len(answers) { // it never answers, and the round ends
				time.AfterFunc(time.Second, stop)
				<-ctx.Done()
				return ctx.Err()
			}
			a := answers[asked]
			asked++
			time.Sleep(a.after)
			return a.err
		}
		var found []time.Duration
		heartbeat.Other(ctx, func() time.Duration { return time.Since(began) }, ask, func(begin, end time.Duration) { found = append(found, begin, end) })
		want := []time.Duration{252 * ms, 3252 * ms, 8502 * ms, 9252 * ms, 9502 * ms, 10502 * ms}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Error(diff)
		}
	})
}
