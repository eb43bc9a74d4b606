// Package conditions evaluates the match conditions of webhooks and policies: the
// expressions that must all be true for a write to be meant. They do not learn of the
// namespace, as in a stock server.
package conditions

import (
	"context"
	"time"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/server/expr"
)

// List is the conditions of one webhook or policy, safe for concurrent use.
type List struct {
	variables *expr.Compiler
	programs  []*expr.Program
	ignores   bool

	// Observe is told how an evaluation ended and how many conditions failed; nil:
	// nobody looks.
	Observe func(took time.Duration, failures int)
}

// Compile makes a list. ignores says that conditions that fail mean no match, and
// not an error.
func Compile(c *expr.Compiler, offer expr.Offer, list []admissionregistrationv1.MatchCondition, ignores bool) *List {
	l := &List{variables: c, ignores: ignores}
	for _, m := range list {
		l.programs = append(l.programs, c.Compile(expr.Source{Text: m.Expression, Offer: offer, Gives: expr.Bool, Stored: true}))
	}
	return l
}

// Match says whether all conditions are true. One that is false decides, whatever
// becomes of the others; otherwise those that failed are the error.
func (l *List) Match(ctx context.Context, in *expr.Input) (bool, error) {
	began, failures := time.Now(), 0
	if l.Observe != nil {
		defer func() { l.Observe(time.Since(began), failures) }()
	}
	// All are evaluated before any counts: a budget that does not last is an error.
	e := expr.Evaluate(ctx, in, l.variables, true, expr.BudgetConditions).WithoutNamespace()
	results := make([]expr.Result, len(l.programs))
	for i, p := range l.programs {
		r, err := e.Run(p)
		if err != nil {
			return false, l.unless(err)
		}
		results[i] = r
	}
	var faults []error
	for _, r := range results {
		if r.Err != nil {
			faults = append(faults, r.Err)
			failures++
		} else if r.Value == types.False {
			return false, nil
		}
	}
	if len(faults) > 0 {
		return false, l.unless(utilerrors.NewAggregate(faults))
	}
	return true, nil
}

// unless is err, where failures are not ignored.
func (l *List) unless(err error) error {
	if l.ignores {
		return nil
	}
	return err
}
