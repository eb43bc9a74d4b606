// Package admission runs the admission plugins on writes that were authorized: mutating
// plugins may change an object before it is validated, and validating plugins may refuse
// it afterwards.
//
// It promises: plugins run in the order of the chain; all mutating plugins run before all
// validating ones; the first refusal ends the request, and so does the end of its context or of the
// steps that it may take (kinds.Steps), before the next plugin runs.
package admission

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/tracing"
)

// Operation is the operation of a request for plugins and webhooks.
type Operation string

const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Attributes describe one write. Objects are in the stored version, except for the body of a subresource with
// a kind of its own (Scale, Binding, Eviction, TokenRequest) and the options of a connect, which are as the
// client sent them.
type Attributes struct {
	Operation   Operation
	Resource    *kinds.Resource
	Subresource string
	Namespace   string
	Name        string         // "" on a create whose name will be generated
	Object      runtime.Object // nil on delete; plugins that mutate change it in place
	Old         runtime.Object // nil on create; read-only
	Options     runtime.Object // *metav1.CreateOptions and so on
	DryRun      bool
	User        *authx.Identity

	// Warn sends a Warning header, Annotate adds to the audit event. Never nil.
	Warn     func(text string)
	Annotate func(key, value string)
	// Recorded means that the audit event contains the body of the request, and so may contain changes to it.
	Recorded bool

	memory         map[string]any
	repeat, second bool
}

// Repeat requests a second run of all mutating plugins, as the object has become
// another one.
func (a *Attributes) Repeat() { a.repeat = true }

// Second reports whether this is the second run.
func (a *Attributes) Second() bool { return a.second }

// Remember keeps something of a plugin for its second run.
func (a *Attributes) Remember(plugin string, v any) {
	if a.memory == nil {
		a.memory = map[string]any{}
	}
	a.memory[plugin] = v
}

// Remembered returns the value that a plugin stored, or nil.
func (a *Attributes) Remembered(plugin string) any { return a.memory[plugin] }

// Meta returns the metadata of Object, or nil where it has none.
func (a *Attributes) Meta() metav1.Object {
	m, _ := a.Object.(metav1.Object)
	return m
}

// Is reports whether the write is of a resource of a group, in any version; sub is
// the subresource, "" the object itself.
func (a *Attributes) Is(group, plural, sub string) bool {
	return a.Resource.Plural == plural && a.Resource.Group == group && a.Subresource == sub
}

// Forbid returns the usual refusal: 403 with the resource and name in front.
func (a *Attributes) Forbid(err error) error {
	name := a.Name
	if m := a.Meta(); m != nil {
		name = m.GetName()
		if name == "" {
			name = m.GetGenerateName()
		}
		name = cmp.Or(name, a.Name)
	}
	name = cmp.Or(name, "Unknown")
	return apierrors.NewForbidden(a.Resource.GroupResource(), name, err)
}

// Plugin is one rule set. It implements Mutator, Validator or both.
type Plugin interface {
	Name() string
	// Handles reports whether the plugin handles an operation.
	Handles(op Operation) bool
}

// CreatesAndUpdates is embedded by plugins that handle creates and updates, and no other operations.
type CreatesAndUpdates struct{}

// Handles implements Plugin.
func (CreatesAndUpdates) Handles(op Operation) bool { return op == Create || op == Update }

// Mutator may change Attributes.Object, or refuse.
type Mutator interface {
	Plugin
	Admit(ctx context.Context, a *Attributes) error
}

// Validator may refuse.
type Validator interface {
	Plugin
	Validate(ctx context.Context, a *Attributes) error
}

// Observer returns the receivers for the durations of a plugin, and of the two steps. It is called once for
// each combination that occurs. phase is "admit" or "validate".
type Observer interface {
	Plugin(name, phase string, op Operation, rejected bool) Timer
	Step(phase string, op Operation, rejected bool) Timer
}

// Timer takes times.
type Timer interface{ Observe(seconds float64) }

// Chain is an ordered list of plugins, split into mutating and validating ones. The nil Chain admits
// everything.
type Chain struct {
	Observer Observer // nil: none; set before the first request

	mutators   []Mutator
	validators []Validator

	admits, validates []timers // of the plugins, and of the step in the end
}

// NewChain returns a chain that runs plugins in the given order.
func NewChain(plugins ...Plugin) *Chain {
	c := &Chain{}
	for _, p := range plugins {
		if m, ok := p.(Mutator); ok {
			c.mutators = append(c.mutators, m)
		}
		if v, ok := p.(Validator); ok {
			c.validators = append(c.validators, v)
		}
	}
	c.admits, c.validates = make([]timers, len(c.mutators)+1), make([]timers, len(c.validators)+1)
	return c
}

// pluginSteps is the cost of calling a plugin, in steps of a write. A plugin that visits lists of other
// objects for each item adds to that.
const pluginSteps = 100

// Admit runs the plugins that may change the object, twice if one requests it.
func (c *Chain) Admit(ctx context.Context, a *Attributes) error {
	if c == nil {
		return nil
	}
	ctx, span := tracing.Start(ctx, "mutating admission")
	defer span.End()
	w := c.watch("admit", c.admits, a.Operation)
	if err := run(ctx, c.mutators, Mutator.Admit, a, &w); err != nil {
		return err
	}
	if a.repeat {
		a.second = true
		if err := run(ctx, c.mutators, Mutator.Admit, a, &w); err != nil {
			return err
		}
	}
	w.ended(false)
	return nil
}

// run calls the plugins in order, until one fails.
func run[P Plugin](ctx context.Context, plugins []P, call func(P, context.Context, *Attributes) error, a *Attributes, w *stopwatch) error {
	steps := kinds.Steps(ctx)
	for i, p := range plugins {
		if !p.Handles(a.Operation) {
			continue
		}
		if err := steps.Spend(ctx, pluginSteps); err != nil {
			return err
		}
		err := call(p, ctx, a)
		w.passed(i, p, err)
		if err != nil {
			return err
		}
	}
	return nil
}

// Validate runs the plugins that only look.
func (c *Chain) Validate(ctx context.Context, a *Attributes) error {
	if c == nil {
		return nil
	}
	ctx, span := tracing.Start(ctx, "validating admission")
	defer span.End()
	w := c.watch("validate", c.validates, a.Operation)
	if err := run(ctx, c.validators, Validator.Validate, a, &w); err != nil {
		return err
	}
	w.ended(false)
	return nil
}

// Names lists the plugins of the chain, each once.
func (c *Chain) Names() []string {
	var names []string
	for _, m := range c.mutators {
		names = append(names, m.Name())
	}
	for _, v := range c.validators {
		if !slices.Contains(names, v.Name()) {
			names = append(names, v.Name())
		}
	}
	return names
}
