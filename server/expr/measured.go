package expr

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// bounded bounds the operations of a program whose work their price does not show.
func bounded(env *cel.Env) interpreter.InterpretableDecorator {
	return func(i interpreter.Interpretable) (interpreter.Interpretable, error) {
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
				op, err := implementation(env, call)
				return &measured{call, call.Args(), f, op}, err
			}
		}
		return i, nil
	}
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
		m := meterOf(in)
		same = m.equal(a, b)
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
type measure func(m *meter, args []ref.Val) ref.Val

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
	m := meterOf(in)
	v := c.measure(m, args)
	m.check()
	if v != nil {
		return v
	}
	return c.op(args...)
}

// implementation is what a call calls.
func implementation(env *cel.Env, call interpreter.InterpretableCall) (functions.FunctionOp, error) {
	name, overload := call.Function(), call.OverloadID()
	bindings, err := env.Functions()[name].Bindings()
	if err != nil {
		return nil, err
	}
	var found *functions.Overload
	for _, b := range bindings {
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

// measures are those of functions by their names.
var measures = map[string]measure{
	operators.In: func(m *meter, args []ref.Val) ref.Val {
		if list, item, ok := listed(args, 1, 0); ok {
			return types.Bool(m.index(list, item, false) >= 0)
		}
		return nil
	},
	"indexOf":         indexed(false),
	"lastIndexOf":     indexed(true),
	"isSorted":        walked,
	"min":             walked,
	"max":             walked,
	"sum":             walked,
	"sets.contains":   sets(func(m *meter, a, b traits.Lister) bool { return m.subset(b, a, false) }),
	"sets.equivalent": sets(func(m *meter, a, b traits.Lister) bool { return m.subset(b, a, false) && m.subset(a, b, false) }),
	"sets.intersects": sets(func(m *meter, a, b traits.Lister) bool { return m.subset(a, b, true) }),
	"format": func(m *meter, args []ref.Val) ref.Val {
		if format, ok := args[0].(types.String); ok && m.precisions(string(format)) && m.spend(len(format)) {
			m.walk(args[len(args)-1], true)
		}
		return nil
	},
	"replace": func(m *meter, args []ref.Val) ref.Val {
		texts, limit := make([]string, 3), -1
		for i, v := range args {
			switch v := v.(type) {
			case types.String:
				if i < len(texts) {
					texts[i] = string(v)
				}
			case types.Int:
				limit = int(v)
			}
		}
		m.replaced(texts[0], texts[1], texts[2], limit)
		return nil
	},
	"split": func(m *meter, args []ref.Val) ref.Val {
		text, ok := args[0].(types.String)
		if by, also := args[1].(types.String); ok && also {
			m.spend(strings.Count(string(text), string(by)))
		}
		return nil
	},
}

// walked takes the steps of finding the price of a function of lists, which has to do with
// all that is in them.
func walked(m *meter, args []ref.Val) ref.Val {
	if _, ok := args[0].(traits.Lister); ok {
		m.walk(args[0], false)
	}
	return nil
}

// listed are a list and a value that may be in it, where other values are in that.
func listed(args []ref.Val, list, item int) (traits.Lister, ref.Val, bool) {
	if len(args) != 2 || !holds(args[item]) {
		return nil, nil, false
	}
	l, ok := args[list].(traits.Lister)
	return l, args[item], ok
}

func indexed(last bool) measure {
	return func(m *meter, args []ref.Val) ref.Val {
		walked(m, args)
		if list, item, ok := listed(args, 0, 1); ok {
			return m.index(list, item, last)
		}
		return nil
	}
}

func sets(f func(m *meter, a, b traits.Lister) bool) measure {
	return func(m *meter, args []ref.Val) ref.Val {
		a, ok := args[0].(traits.Lister)
		b, also := args[1].(traits.Lister)
		if !ok || !also {
			return nil
		}
		return types.Bool(f(m, a, b))
	}
}
