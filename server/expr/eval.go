package expr

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/lazy"

	"github.com/rowlock/rowlock/authx/meter"
)

// Input holds the variables of the expressions of one decision. A function is called once, when its variable
// is first used; it returns decoded JSON (nil, maps, lists, strings, int64, float64, bool). A nil function is
// a null variable. An Input belongs to one goroutine.
type Input struct {
	Object, OldObject, Params, Request, Namespace func() (any, error)
	Authorizer                                    *Authorizer // nil: there is none

	known  map[string]ref.Val
	params ref.Val
}

// WithParams returns the input with other parameters, nil for none. Both share the values of other variables.
func (in *Input) WithParams(params func() (any, error)) *Input {
	if in.known == nil {
		in.known = map[string]ref.Val{}
	}
	out := *in
	out.Params, out.params = params, nil
	return &out
}

func (in *Input) paramsValue() ref.Val {
	if in.params == nil {
		in.params = prepare(varParams, in.Params)
	}
	return in.params
}

func (in *Input) value(name string, of func() (any, error)) ref.Val {
	if v, ok := in.known[name]; ok {
		return v
	}
	if in.known == nil {
		in.known = map[string]ref.Val{}
	}
	v := prepare(name, of)
	in.known[name] = v
	return v
}

func prepare(name string, of func() (any, error)) ref.Val {
	if of == nil {
		return types.NullValue
	}
	raw, err := of()
	if err != nil {
		return types.NewErr("failed to prepare %s variable for evaluation: %v", name, err)
	}
	return types.DefaultTypeAdapter.NativeToValue(raw)
}

// Evaluation runs programs that share their variables and a cost budget.
type Evaluation struct {
	ctx        context.Context
	in         *Input
	authorizer bool
	variables  *Compiler // nil: there are none
	left       int64
	cost       int64 // of variables, not yet taken from the budget
	values     *lazy.MapValue
	meter      *meter.Meter
	alone      bool // without the variable namespaceObject
}

// WithoutNamespace makes the namespace null.
func (e *Evaluation) WithoutNamespace() *Evaluation {
	e.alone = true
	return e
}

// ErrBudget is why nothing more is evaluated.
var ErrBudget = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")

// Evaluate starts an evaluation within a budget. variables may be nil; authorizer
// means that expressions may use the authorizer.
func Evaluate(ctx context.Context, in *Input, variables *Compiler, authorizer bool, budget int64) *Evaluation {
	if variables != nil && variables.declared == nil {
		variables = nil
	}
	return &Evaluation{ctx: ctx, in: in, authorizer: authorizer, variables: variables, left: budget, meter: meter.New(ctx, meter.MaxSteps)}
}

// Left returns the remaining budget.
func (e *Evaluation) Left() int64 { return e.left }

// Result is the result of one expression: a value, or an error of this expression only.
type Result struct {
	Value ref.Val
	Err   error
}

// Run evaluates a program. An error ends the evaluation as a whole; an error
// of this one expression is in the result.
func (e *Evaluation) Run(p *Program) (Result, error) {
	if p.fault != nil {
		return Result{Err: fmt.Errorf("compilation error: %w", p.fault)}, nil
	}
	value, details, err := p.program.ContextEval(e.ctx, e)
	cost := e.cost
	e.cost = 0
	if err := e.spend(cost); err != nil {
		return Result{}, err
	}
	if err := e.spend(costOf(details)); err != nil {
		return Result{}, err
	}
	if err != nil {
		return Result{Err: fmt.Errorf("expression '%v' resulted in error: %w", p.Text, err)}, nil
	}
	return Result{Value: value}, nil
}

func (e *Evaluation) spend(cost int64) error {
	if cost > e.left {
		e.left = -1
		return ErrBudget
	}
	e.left -= cost
	return nil
}

// costOf returns the cost of an evaluation; an unknown cost counts as the whole budget.
func costOf(d *cel.EvalDetails) int64 {
	if d == nil {
		return math.MaxInt64
	}
	c := d.ActualCost()
	if c == nil || *c > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(*c)
}

// ResolveName implements interpreter.Activation.
func (e *Evaluation) ResolveName(name string) (any, bool) {
	in := e.in
	switch name {
	case meter.Name:
		return e.meter, true
	case varObject:
		return in.value(name, in.Object), true
	case varOldObject:
		return in.value(name, in.OldObject), true
	case varParams:
		return in.paramsValue(), true
	case varRequest:
		return in.value(name, in.Request), true
	case varNamespace:
		if e.alone {
			return types.NullValue, true
		}
		return in.value(name, in.Namespace), true
	case varAuthorizer:
		if e.authorizer && in.Authorizer != nil {
			return in.Authorizer.value(), true
		}
	case varResource:
		if e.authorizer && in.Authorizer != nil {
			return in.Authorizer.resource(), true
		}
	case varVariables:
		if e.variables != nil {
			return e.declared(), true
		}
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (*Evaluation) Parent() interpreter.Activation { return nil }

// declared returns the variables of a policy, each evaluated when it is first used.
func (e *Evaluation) declared() ref.Val {
	if e.values != nil {
		return e.values
	}
	e.values = lazy.NewMapValue(e.variables.declared)
	for _, name := range e.variables.names {
		p := e.variables.values[name]
		e.values.Append(name, func(*lazy.MapValue) ref.Val { return e.variable(name, p) })
	}
	return e.values
}

func (e *Evaluation) variable(name string, p *Program) ref.Val {
	if p.fault != nil {
		return types.NewErr("composited variable %q fails to compile: %v", name, p.fault)
	}
	if e.cost > e.left { // one expression can use very many variables
		return types.NewErr("composited variable %q is not evaluated: %v", name, ErrBudget)
	}
	value, details, err := p.program.ContextEval(e.ctx, e)
	if details == nil {
		return types.NewErr("unable to get evaluation details of variable %q", name)
	}
	cost := costOf(details)
	if e.cost += cost; e.cost < 0 { // overflow
		e.cost = math.MaxInt64
	}
	if err != nil {
		return types.NewErr("composited variable %q fails to evaluate: %v", name, err)
	}
	return value
}
