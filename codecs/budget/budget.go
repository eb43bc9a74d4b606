// Package budget bounds the cost of one request, in addition to the weight of its body.
//
// A Budget counts work while it is done, and ends with the request: every loop over data from a client, or as
// often as a client determines, spends from it. Weights estimate the memory of decoded data before it is
// decoded, and so limit how many bodies are processed at a time. The limits are far above the needs of any
// useful object, and the worst request within them costs about a second of one processor and some 100 MB.
package budget

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/codecs/yield"
)

// Work is the number of steps of one piece of work: visited nodes of a tree, moved items, compared paths.
const Work = 16 << 20

// leastShare is Sizes.Share where no object is larger than DefaultObject.
const leastShare = 2 * Memory

// Small is the weight of a body that need not wait, and is not worth a closer look.
const Small = 8 << 20

// askEvery is the number of steps between checks of the context, at which other goroutines may continue.
const askEvery = 1024

// Budget is the remaining part of the bound for one piece of work. A nil Budget is unlimited. It is for one
// goroutine.
type Budget struct {
	ctx   context.Context
	what  string
	left  int64
	until int64 // check ctx when no more than this is left
	asked bool  // ctx has been checked
}

// New returns the budget of a part of a request. what names it in the error, as in "the merge patch needs too much
// work".
func New(ctx context.Context, what string) *Budget { return Of(ctx, what, Work) }

// Of returns a budget of a number of steps.
func Of(ctx context.Context, what string, steps int64) *Budget {
	return &Budget{ctx: ctx, what: what, left: steps, until: steps}
}

// Spend takes n steps from the budget. The error is that of the context once that has ended, or a 413.
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
	if b.asked { // much work, which otherwise keeps a processor for ten milliseconds at a time
		yield.Now()
	}
	b.asked = true
	return b.ctx.Err()
}

// Spent returns the number of spent steps; for tests.
func (b *Budget) Spent(steps int64) int64 { return steps - b.left }

// TooMuch returns the refusal of a request that would cost too much: a 413.
func TooMuch(format string, args ...any) error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(format, args...))
}
