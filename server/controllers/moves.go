package controllers

import (
	"context"
	"time"
)

// Moves tells who waits for a moment of a clock that the clock is moved, as tests do: the
// channel is closed by the next move. Nil: nobody moves the clock.
type Moves func() <-chan struct{}

// next is the channel. It is to be asked for before the clock is read, so that no move is missed.
func (m Moves) next() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m()
}

// wait waits for some time of a clock, and says whether that has passed before ctx ended.
func (m Moves) wait(ctx context.Context, clock func() time.Time, d time.Duration) bool {
	moved := m.next()
	end := clock().Add(d)
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-moved:
			if moved = m.next(); !clock().Before(end) {
				return true
			}
		}
	}
}
