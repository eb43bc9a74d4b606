package budget

import (
	"context"
	"sync/atomic"
)

// Steps are what all parts of a request may take together: plugins that look at its object, rules
// that validate it, and loops over lists of two objects whose sizes two clients chose, which cannot
// be linear. Unlike a Budget they are for several goroutines, and know their context when they are
// spent.
type Steps struct {
	what  string
	spent atomic.Int64
}

// NewSteps are as many as a Budget has from New, as a part of what the work is known by: they must not be copied once
// some are spent. what names the work in the error.
func NewSteps(what string) Steps { return Steps{what: what} }

// Spend takes n steps. The error is that of ctx once that has ended, as the client left or its
// time is over, or a 413. Nil Steps have no end of their own.
func (s *Steps) Spend(ctx context.Context, n int) error {
	if s != nil && s.spent.Add(int64(n)) > Work {
		return TooMuch("%s needs too much work", s.what)
	}
	return ctx.Err()
}

// Spent is how many steps were taken.
func (s *Steps) Spent() int64 { return s.spent.Load() }
