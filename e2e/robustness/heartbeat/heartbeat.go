// Package heartbeat measures when the program of a run, or a server that it tests, did not run: on a busy machine a process may
// get no processor for seconds, and then it cannot keep a promise about time.
package heartbeat

import (
	"context"
	"time"
)

const (
	// Late is the longest delay that counts as running.
	Late = 500 * time.Millisecond

	every    = 50 * time.Millisecond
	askEvery = 250 * time.Millisecond
)

// Own sleeps for a moment, again and again until ctx ends, and calls stalled with each time by which it woke up too late.
func Own(ctx context.Context, now func() time.Duration, stalled func(begin, end time.Duration)) {
	for ctx.Err() == nil {
		due := now() + every
		select {
		case <-ctx.Done():
		case <-time.After(every):
		}
		if at := now(); at-due > Late {
			stalled(due, at)
		}
	}
}

// Other asks another process for a sign of life, again and again until ctx ends, and calls stalled with each time that an answer took
// too long. An error, as of a process that is down, is no answer.
func Other(ctx context.Context, now func() time.Duration, ask func(context.Context) error, stalled func(begin, end time.Duration)) {
	for ctx.Err() == nil {
		begin := now()
		err := ask(ctx)
		if at := now(); at-begin > Late && (err == nil || ctx.Err() != nil) {
			stalled(begin, at)
		}
		select {
		case <-ctx.Done():
		case <-time.After(askEvery):
		}
	}
}
