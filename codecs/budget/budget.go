// Package budget bounds what one request may make the server do, in addition to what its body
// may weigh.
//
// A Budget counts work as it is done, and ends when the request does: whoever walks
// something that a client made, or does something as often as a client says, spends from
// it. Weights say before anything is decoded how much memory that would take, and so how many
// bodies may be worked on together. The limits are far above
// what any object needs that is of use, and such that the worst that fits costs about a
// second of one processor and some 100 MB.
package budget

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Work is how many steps one piece of work may take: nodes of a tree that are visited,
// items that are moved, paths that are compared.
const Work = 16 << 20

// leastShare is Sizes.Share where no object is larger than DefaultObject.
const leastShare = 2 * Memory

// Small is the weight of a body that need not wait, and is not worth a closer look.
const Small = 8 << 20

// askEvery is after how many steps the context is asked whether anybody still waits.
const askEvery = 4096

// Budget is the rest of the bound for one piece of work. A nil Budget has no end. It is for one
// goroutine.
type Budget struct {
	ctx   context.Context
	what  string
	left  int64
	until int64 // ask again when no more than this is left
}

// New makes the budget of a piece of work of a request. what names it in the error, as in
// "the merge patch needs too much work".
func New(ctx context.Context, what string) *Budget { return Of(ctx, what, Work) }

// Of makes a budget of so many steps.
func Of(ctx context.Context, what string, steps int64) *Budget {
	return &Budget{ctx: ctx, what: what, left: steps, until: steps}
}

// Spend takes n steps from the budget. The error is that of the context once that has
// ended, or a 413.
func (b *Budget) Spend(n int) error {
	if b == nil {
		return nil
	}
	if b.left -= int64(n); b.left >= b.until && b.left >= 0 {
		return nil
	}
	if b.left < 0 {
		return TooMuch("%s needs too much work", b.what)
	}
	b.until = b.left - askEvery
	return b.ctx.Err()
}

// Spent is how many of the given steps are gone; for tests.
func (b *Budget) Spent(steps int64) int64 { return steps - b.left }

// TooMuch is the refusal of a request that would cost too much: a 413.
func TooMuch(format string, args ...any) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(format, args...))
}
