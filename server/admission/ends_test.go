package admission_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// hook is a plugin that does something else.
type hook func(context.Context)

func (hook) Name() string                                                  { return "hook" }
func (hook) Handles(admission.Operation) bool                              { return true }
func (h hook) Admit(ctx context.Context, _ *admission.Attributes) error    { h(ctx); return nil }
func (h hook) Validate(ctx context.Context, _ *admission.Attributes) error { h(ctx); return nil }

// TestPluginsEndWithTheWrite: no plugin runs for a client that has left, after the deadline of a
// request, or when the write has taken all of its steps.
func TestPluginsEndWithTheWrite(t *testing.T) {
	for name, run := range map[string]func(*admission.Chain, context.Context) error{
		"admit":    func(c *admission.Chain, ctx context.Context) error { return c.Admit(ctx, &admission.Attributes{}) },
		"validate": func(c *admission.Chain, ctx context.Context) error { return c.Validate(ctx, &admission.Attributes{}) },
	} {
		later := 0
		after := hook(func(context.Context) { later++ })
		ctx, leave := context.WithCancel(kinds.WithRequested(t.Context(), &kinds.Resource{}))
		if err := run(admission.NewChain(hook(func(context.Context) { leave() }), after), ctx); !errors.Is(err, context.Canceled) || later != 0 {
			t.Errorf("%s: a client that left: %v, and %d more plugins ran", name, err, later)
		}
		ctx = kinds.WithRequested(t.Context(), &kinds.Resource{})
		spend := hook(func(ctx context.Context) { _ = kinds.Steps(ctx).Spend(ctx, budget.Work) })
		if err := run(admission.NewChain(spend, after), ctx); err == nil || err.Error() != "Request entity too large: the write needs too much work" || later != 0 {
			t.Errorf("%s: a write without steps: %v, and %d more plugins ran", name, err, later)
		}
	}
}
