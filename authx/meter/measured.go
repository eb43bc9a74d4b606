package meter

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Extend bounds the operations of all programs that are made in an environment.
func Extend(set *environment.EnvSet) (*environment.EnvSet, error) {
	d := decorator{}
	known := set.StoredExpressionsEnv().Functions()
	for name := range measures {
		f := known[name]
		if f == nil {
			return nil, fmt.Errorf("there is no function %q to be measured", name)
		}
		bindings, err := f.Bindings()
		if err != nil {
			return nil, fmt.Errorf("the function %q: %w", name, err)
		}
		d[name] = bindings
	}
	return set.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		ProgramOptions:    []cel.ProgramOption{cel.CustomDecorator(d.decorate)},
	})
}

// decorator has what implements the functions that are measured.
type decorator map[string][]*functions.Overload

// decorate bounds an operation whose work its price does not show.
func (d decorator) decorate(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch name := call.Function(); name {
	case operators.Add:
		return join{call}, nil
	case operators.Equals, operators.NotEquals:
		if args := call.Args(); len(args) == 2 {
			return &comparison{call, args[0], args[1], name == operators.NotEquals}, nil
		}
	default:
		if f := measures[name]; f != nil {
			op, err := d.implementation(call)
			return &measured{call, unfolded(name, call.Args()), f, op}, err
		}
	}
	return i, nil
}

// unfolded hides of patterns that they are constants, as the library would put a match by a
// compiled pattern, which it compiles for each evaluation, in place of what is measured.
func unfolded(name string, args []interpreter.Interpretable) []interpreter.Interpretable {
	if !patterned[name] || len(args) < 2 {
		return args
	}
	args = append([]interpreter.Interpretable(nil), args...)
	args[1] = variable{args[1]}
	return args
}

type variable struct{ interpreter.Interpretable }

// implementation is what a call calls.
func (d decorator) implementation(call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	name, overload := call.Function(), call.OverloadID()
	var found *functions.Overload
	for _, b := range d[name] {
		if b.Operator == overload || found == nil && b.Operator == name {
			found = b
		}
	}
	if found == nil {
		return nil, fmt.Errorf("the function %q has no implementation", name)
	}
	return func(args ...ref.Val) ref.Val {
		switch {
		case found.Unary != nil && len(args) == 1:
			return found.Unary(args[0])
		case found.Binary != nil && len(args) == 2:
			return found.Binary(args[0], args[1])
		case found.Function != nil:
			return found.Function(args...)
		}
		return types.NewErr("no such overload: %s", name)
	}, nil
}

// comparison tells whether two values are equal.
type comparison struct {
	interpreter.InterpretableCall
	left, right interpreter.Interpretable
	not         bool
}

// Eval implements interpreter.Interpretable.
func (c *comparison) Eval(in interpreter.Activation) ref.Val {
	a, b := c.left.Eval(in), c.right.Eval(in)
	switch {
	case types.IsUnknownOrError(a):
		return a
	case types.IsUnknownOrError(b):
		return b
	}
	var same ref.Val
	if holds(a) && holds(b) {
		m := of(in)
		same = m.Equal(a, b)
		m.check()
	} else {
		same = types.Equal(a, b)
	}
	if c.not {
		return types.Bool(same != types.True)
	}
	return same
}

// measured is a call of a function that is measured first.
type measured struct {
	interpreter.InterpretableCall
	args    []interpreter.Interpretable
	measure measure
	op      functions.FunctionOp
}

// measure takes the steps that a function needs. It may give the value as well.
type measure func(m *Meter, args []ref.Val) ref.Val

// Args implements interpreter.InterpretableCall.
func (c *measured) Args() []interpreter.Interpretable { return c.args }

// Eval implements interpreter.Interpretable.
func (c *measured) Eval(in interpreter.Activation) ref.Val {
	args := make([]ref.Val, len(c.args))
	for i, arg := range c.args {
		args[i] = arg.Eval(in)
	}
	for _, v := range args {
		if types.IsUnknownOrError(v) {
			return v
		}
	}
	m := of(in)
	v := c.measure(m, args)
	m.check()
	if v != nil {
		return v
	}
	return c.op(args...)
}
