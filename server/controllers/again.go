package controllers

import (
	"context"
	"time"
)

// again calls follow until ctx ends: at once after it said true, after a rest (0: a
// second) else.
func again(ctx context.Context, rest time.Duration, follow func(context.Context) bool) error {
	if rest == 0 {
		rest = time.Second
	}
	for ctx.Err() == nil {
		if follow(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
	return nil
}
