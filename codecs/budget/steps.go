package budget

import (
	"context"
	"sync/atomic"
)

// Steps are the budget that all parts of a request share: plugins that examine its object, validation rules,
// and loops over lists of two objects whose sizes two clients chose, which cannot be linear. Unlike a Budget
// they are for several goroutines, and Spend gets the context.
type Steps struct {
	what  string
	spent atomic.Int64
}

// NewSteps returns as many steps as New of a Budget, as a value: it must not be copied once some are spent.
// what names the work in the error.
func NewSteps(what string) Steps { return Steps{what: what} }

// Spend takes n steps. The error is that of ctx once that has ended, or a 413. Nil Steps are unlimited.
func (s *Steps) Spend(ctx context.Context, n int) error {
	if s != nil && s.spent.Add(int64(n)) > Work {
		return TooMuch("%s needs too much work", s.what)
	}
	return ctx.Err()
}

// Spent returns how many steps were taken.
func (s *Steps) Spent() int64 { return s.spent.Load() }
