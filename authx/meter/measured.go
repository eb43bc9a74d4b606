package meter

import (
	"fmt"
	"slices"

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
	known := map[string][]*functions.Overload{}
	declared := set.StoredExpressionsEnv().Functions()
	for name := range measures {
		f := declared[name]
		if f == nil {
			return nil, fmt.Errorf("there is no function %q to be measured", name)
		}
		bindings, err := f.Bindings()
		if err != nil {
			return nil, fmt.Errorf("the function %q: %w", name, err)
		}
		known[name] = bindings
	}
	decorate, err := decoratorOf(planned{}, known)
	if err != nil {
		return nil, err
	}
	return set.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		ProgramOptions:    []cel.ProgramOption{cel.CustomDecorator(decorate)},
	})
}

// Releases of cel-go differ in what they call: up to 0.28 Eval with an Activation, and from 0.29 on Exec with
// a frame, which is also an Activation, in a call with another type of arguments. A program that embeds
// rowlock selects the release. So this file names neither type: the compiler infers them from planned.

// planned is a call of the library, with the method Exec whether or not calls of the library have it.
type planned struct {
	interpreter.InterpretableCall
	deeper // the library's own costs come first
}

type deeper struct{ evaluated }

type evaluated struct{}

// Exec returns the method of calls without arguments.
func (evaluated) Exec(interpreter.Activation) ref.Val { return nil }

// operation replaces a call in a program. Releases of cel-go evaluate it by Eval or by Exec.
type operation[F interpreter.Activation] interface {
	interpreter.Interpretable
	Exec(F) ref.Val
}

// decorator bounds operations. Arguments of calls are A.
type decorator[A interpreter.Interpretable, F interpreter.Activation] struct {
	known map[string][]*functions.Overload // the implementations of the measured functions
}

// decoratorOf makes a decorator for calls like the given one.
func decoratorOf[A interpreter.Interpretable, F interpreter.Activation](_ interface {
	Args() []A
	Exec(F) ref.Val
}, known map[string][]*functions.Overload) (interpreter.InterpretableDecorator, error) {
	// Among others, the library uses these interfaces of a call, to find its cost.
	for _, o := range []operation[F]{join[F]{}, &comparison[F]{}, &measured[A, F]{}} {
		if _, ok := o.(interpreter.InterpretableCall); !ok {
			return nil, fmt.Errorf("this release of cel-go cannot be used: %T is no call", o)
		}
	}
	if _, ok := any(variable[F]{}).(A); !ok {
		return nil, fmt.Errorf("this release of cel-go cannot be used: %T is no argument", variable[F]{})
	}
	return decorator[A, F]{known}.decorate, nil
}

// decorate bounds an operation whose work its price does not show.
func (d decorator[A, F]) decorate(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	switch part := i.(type) {
	case interpreter.InterpretableAttribute:
		if isAttribute(i) {
			return attribute[F]{part}, nil
		}
	case interpreter.InterpretableConstructor:
		if n := variableKeys(part); n > 0 {
			return mapping[F]{part, n}, nil
		}
	}
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch name := call.Function(); name {
	case operators.Add:
		return join[F]{call}, nil
	case operators.Equals, operators.NotEquals:
		if args := call.Args(); len(args) == 2 {
			return &comparison[F]{call, args[0], args[1], name == operators.NotEquals}, nil
		}
	default:
		if f := measures[name]; f != nil {
			op, err := d.implementation(call)
			if err != nil {
				return nil, err
			}
			args, ok := any(call.Args()).([]A)
			if !ok {
				return nil, fmt.Errorf("arguments of %q are %T", name, call.Args())
			}
			return &measured[A, F]{call, unfolded[A, F](name, args), f, op}, nil
		}
	}
	return i, nil
}

// unfolded hides that patterns are constants: otherwise the library would replace the measured function by a
// match with a compiled pattern, which it compiles for each evaluation.
func unfolded[A interpreter.Interpretable, F interpreter.Activation](name string, args []A) []A {
	if !patterned[name] || len(args) < 2 {
		return args
	}
	args = slices.Clone(args)
	args[1], _ = any(variable[F]{args[1]}).(A) // decoratorOf has looked
	return args
}

// variable is an argument that is no constant.
type variable[F interpreter.Activation] struct{ interpreter.Interpretable }

// Exec is Eval.
func (v variable[F]) Exec(frame F) ref.Val { return v.Eval(frame) }

// implementation returns the function of a call.
func (d decorator[A, F]) implementation(call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	name, overload := call.Function(), call.OverloadID()
	var found *functions.Overload
	for _, b := range d.known[name] {
		if b.Operator == overload || found == nil && b.Operator == name {
			found = b
		}
	}
	if found == nil {
		return nil, fmt.Errorf("the function %q has no implementation", name)
	}
	return func(args ...ref.Val) ref.Val {
		switch {
		case found.OperandTrait != 0 && !args[0].Type().HasTrait(found.OperandTrait):
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

// comparison compares two values.
type comparison[F interpreter.Activation] struct {
	interpreter.InterpretableCall
	left, right interpreter.Interpretable
	not         bool
}

// Eval implements interpreter.Interpretable.
func (c *comparison[F]) Eval(in interpreter.Activation) ref.Val {
	a, b := c.left.Eval(in), c.right.Eval(in)
	switch {
	case types.IsUnknownOrError(a):
		return a
	case types.IsUnknownOrError(b):
		return b
	}
	var same ref.Val
	switch n := length(a) + length(b); {
	case holds(a) && holds(b):
		m := of(in)
		same = m.Equal(a, b)
		m.check()
	case n >= sameBytes: // the library counts the characters of both for the price
		m := of(in)
		m.Spend(n / sameBytes)
		m.check()
		fallthrough
	default:
		same = types.Equal(a, b)
	}
	if c.not {
		return types.Bool(same != types.True)
	}
	return same
}

// Exec is Eval.
func (c *comparison[F]) Exec(frame F) ref.Val { return c.Eval(frame) }

// measured is a call of a function that is measured first.
type measured[A interpreter.Interpretable, F interpreter.Activation] struct {
	interpreter.InterpretableCall
	args    []A
	measure measure
	op      functions.FunctionOp
}

// measure takes the steps that a function needs. It may give the value as well.
type measure func(m *Meter, args []ref.Val) ref.Val

// Args implements interpreter.InterpretableCall.
func (c *measured[A, F]) Args() []A { return c.args }

// Exec is Eval.
func (c *measured[A, F]) Exec(frame F) ref.Val { return c.Eval(frame) }

// Eval implements interpreter.Interpretable.
func (c *measured[A, F]) Eval(in interpreter.Activation) ref.Val {
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
