// Package conditions evaluates the match conditions of webhooks and policies: a webhook or
// policy applies to a write only if all of its expressions are true. The variable
// namespaceObject is not available to them, as in the standard API server.
package conditions

import (
	"context"
	"time"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/expr"
)

// List is the conditions of one webhook or policy, safe for concurrent use.
type List struct {
	variables *expr.Compiler
	programs  []*expr.Program
	ignores   bool

	// Of names the owner of the conditions, and Metrics receives their results; nil: no metrics.
	Of      Owner
	Metrics *Metrics
}

// Owner names a webhook or policy as metrics do: Kind is "webhook" or "policy", Phase
// "admit", "validating" or "validate".
type Owner struct{ Name, Kind, Phase string }

// Compile makes a list. ignores means that conditions that fail mean no match, and
// not an error.
func Compile(c *expr.Compiler, offer expr.Offer, list []admissionregistrationv1.MatchCondition, ignores bool) *List {
	l := &List{variables: c, ignores: ignores}
	for _, m := range list {
		l.programs = append(l.programs, c.Compile(expr.Source{Text: m.Expression, Offer: offer, Gives: expr.Bool, Stored: true}))
	}
	return l
}

// Match reports whether all conditions are true of a write. One that is false decides, whatever the errors of
// the others; otherwise these errors are returned.
func (l *List) Match(ctx context.Context, in *expr.Input, op admission.Operation) (bool, error) {
	began := time.Now()
	meant, failures, err := l.evaluate(ctx, in)
	if l.Metrics != nil {
		l.Metrics.observe(l.Of, op, time.Since(began), failures)
	}
	if err != nil && l.ignores {
		return false, nil
	}
	return meant, err
}

func (l *List) evaluate(ctx context.Context, in *expr.Input) (meant bool, failures int, err error) {
	// All are evaluated before any counts: a budget that does not last is an error.
	e := expr.Evaluate(ctx, in, l.variables, true, expr.BudgetConditions).WithoutNamespace()
	results := make([]expr.Result, len(l.programs))
	for i, p := range l.programs {
		if results[i], err = e.Run(p); err != nil {
			return false, 0, err
		}
	}
	var faults []error
	for _, r := range results {
		if r.Err != nil {
			faults = append(faults, r.Err)
		} else if r.Value == types.False {
			return false, len(faults), nil
		}
	}
	if len(faults) > 0 {
		return false, len(faults), utilerrors.NewAggregate(faults)
	}
	return true, 0, nil
}
