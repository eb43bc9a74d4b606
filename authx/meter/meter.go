// Package meter bounds the cost of expressions (CEL), wherever they are evaluated: in admission, in rules of
// custom resources, in match conditions of authorization webhooks, and on the claims of a token. The
// library's cost model counts only the length of the outermost value, or of an operand, even if the work
// depends on everything inside it.
//
// The steps of a Meter (Extend) bound the work of an evaluation and the bytes that it allocates; Vet finds a
// text that would become too large by compilation at a cost linear in its length. Results are those of the
// library.
//
// The package is in authx because authenticators cannot import the server.
package meter

import (
	"context"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// MaxSteps bounds the values that the expressions of one decision compare, and the bytes of text
// that they make: work that depends on the contents of a value, while its price depends on the
// length of the outermost list alone. Sixty lists, each of which has the one before it twice, cost
// sixty, and comparing them takes 2^60 steps that no deadline ends.
const MaxSteps = 2_000_000

const noSteps = "the values are too large to be compared or formatted"

// Name is the variable whose value is the Meter of an evaluation. It is no name that an
// expression could have.
const Name = "#meter"

// Meter counts steps. It belongs to one goroutine.
type Meter struct {
	ctx  context.Context
	left int
	n    int // steps since the last check of ctx
	all  int
}

// askedEach is the number of steps between checks of the context.
const askedEach = 1024

// New makes a meter of that many steps, which ends with ctx.
func New(ctx context.Context, steps int) *Meter { return &Meter{ctx: ctx, left: steps, all: steps} }

// Over reports whether the steps were spent, or the context has ended.
func (m *Meter) Over() bool { return m.left < 0 }

// Used returns how many steps were taken; all of them, where there were not enough.
func (m *Meter) Used() int { return m.all - max(m.left, 0) }

// Spend takes steps, and reports whether there were as many.
func (m *Meter) Spend(steps int) bool {
	if m.left < 0 || steps < 0 || steps > m.left {
		m.left = -1
		return false
	}
	m.left -= steps
	if m.n += 1 + steps; m.n >= askedEach {
		if m.n = 0; m.ctx.Err() != nil {
			m.left = -1
		}
	}
	return m.left >= 0
}

// spendProduct is Spend for a product, which may overflow.
func (m *Meter) spendProduct(a, b int) bool {
	if a > 0 && b > m.left/a {
		return m.Spend(-1)
	}
	return m.Spend(a * b)
}

// check ends the evaluation if there were not enough steps, like an expression that costs too much. An error
// would not suffice: computing the cost of a failed expression may take as long.
func (m *Meter) check() {
	if m.left < 0 {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: noSteps})
	}
}

// of finds the meter of an evaluation.
func of(in interpreter.Activation) *Meter {
	if v, ok := in.ResolveName(Name); ok {
		if m, ok := v.(*Meter); ok && m != nil {
			return m
		}
	}
	return New(context.Background(), MaxSteps)
}

// Structure is a value with named fields that an expression made.
type Structure interface {
	ref.Val
	Fields() map[string]ref.Val
}

// holds reports whether a value contains other values.
func holds(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional, Structure:
		return true
	}
	return false
}

// sameBytes is the number of bytes of two texts that a step compares.
const sameBytes = 64

// Equal is types.Equal, step by step.
func (m *Meter) Equal(a, b ref.Val) ref.Val {
	if !m.Spend(1) {
		return types.NewErr(noSteps)
	}
	if isData(a) {
		return m.equalData(a, b)
	}
	if n := length(a); n > 0 && n == length(b) && !m.Spend(n/sameBytes) {
		return types.NewErr(noSteps)
	}
	switch x := a.(type) {
	case Structure:
		return m.equalStructures(x, b)
	case *types.Optional:
		y, ok := b.(*types.Optional)
		if !ok || !x.HasValue() || !y.HasValue() {
			return types.Bool(ok && !x.HasValue() && !y.HasValue())
		}
		return m.Equal(x.GetValue(), y.GetValue())
	case traits.Lister:
		y, ok := b.(traits.Lister)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		size, _ := x.Size().(types.Int)
		return m.pairs(func(yield func(a, b ref.Val) bool) {
			for i := types.Int(0); i < size && yield(x.Get(i), y.Get(i)); i++ {
			}
		})
	case traits.Mapper:
		y, ok := b.(traits.Mapper)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		return m.pairs(func(yield func(a, b ref.Val) bool) {
			for it := x.Iterator(); it.HasNext() == types.True; {
				key := it.Next()
				m.Spend(length(key) / sameBytes) // without steps the values are not compared
				v, _ := x.Find(key)
				w, found := y.Find(key)
				if !found {
					w = nil
				}
				if !yield(v, w) {
					return
				}
			}
		})
	}
	return types.Equal(a, b)
}

// equalStructures compares objects that an expression made.
func (m *Meter) equalStructures(x Structure, b ref.Val) ref.Val {
	y, ok := b.(Structure)
	if !ok || x.Type().TypeName() != y.Type().TypeName() || len(x.Fields()) != len(y.Fields()) {
		return types.False
	}
	others := y.Fields()
	return m.pairs(func(yield func(a, b ref.Val) bool) {
		for name, v := range x.Fields() {
			if !yield(v, others[name]) {
				return
			}
		}
	})
}

// pairs reports whether all of some pairs are equal; nil is equal to nothing.
func (m *Meter) pairs(of func(yield func(a, b ref.Val) bool)) ref.Val {
	result := ref.Val(types.True)
	of(func(a, b ref.Val) bool {
		if b == nil || m.Equal(a, b) == types.False {
			result = types.False
		} else if m.left < 0 {
			result = types.NewErr(noSteps)
		}
		return result == types.True
	})
	return result
}

// dataPackage has the values that represent a custom object and its parts. By their schema, their lists may
// be sets and maps, with equality and addition of their own.
const (
	dataPackage = "k8s.io/apiserver/pkg/cel/common"
	setList     = "unstructuredSetList"
	mapList     = "unstructuredMapList"
)

// isData reports whether a value is one of them.
func isData(v ref.Val) bool {
	t := reflect.TypeOf(v)
	return t != nil && t.Kind() == reflect.Pointer && t.Elem().PkgPath() == dataPackage
}

// equalData compares a part of a custom object with another value. The cost depends on that part, whatever
// the other value is. The exception are maps written as lists: the other list may contain one of their items
// many times, and each of its items is encoded to find its key.
func (m *Meter) equalData(a, b ref.Val) ref.Val {
	values, ok := m.tree(a.Value(), false)
	if !ok {
		return types.NewErr(noSteps)
	}
	if other, ok := b.(traits.Lister); ok && reflect.TypeOf(a).Elem().Name() == mapList {
		size, _ := other.Size().(types.Int)
		if own, ok := a.(traits.Lister); ok && own.Size() == size && (!m.walk(b, true) || !isData(b) && !m.spendProduct(values, int(size))) {
			return types.NewErr(noSteps)
		}
	}
	return types.Equal(a, b)
}

// tree takes steps for the contents of a part of an object: the values, and the bytes of their
// text. It takes them as it goes: lists that an expression has joined may have one part very
// often, and that part another.
func (m *Meter) tree(v any, text bool) (values int, ok bool) {
	values, bytes := 1, 0
	switch v := v.(type) {
	case string:
		bytes = len(v)
	case []any:
		for _, item := range v {
			n, ok := m.tree(item, text)
			if !ok {
				return 0, false
			}
			values += n
		}
	case map[string]any:
		for name, value := range v {
			n, ok := m.tree(value, text)
			if !ok {
				return 0, false
			}
			values += n
			bytes += len(name)
		}
		if !m.Spend(len(v)) {
			return 0, false
		}
		values += len(v)
	}
	if !text {
		bytes /= sameBytes // they are compared
	}
	return values, m.Spend(1 + bytes)
}

// walk takes steps for all values in a value, and for the bytes of their text.
func (m *Meter) walk(v ref.Val, text bool) bool {
	if isData(v) {
		_, ok := m.tree(v.Value(), text)
		return ok
	}
	switch v := v.(type) {
	case types.String:
		return m.Spend(1) && (!text || m.Spend(len(v)))
	case types.Bytes:
		return m.Spend(1) && (!text || m.Spend(len(v)))
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !m.walk(it.Next(), text) {
				return false
			}
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if !m.walk(key, text) || !m.walk(v.Get(key), text) {
				return false
			}
		}
	}
	return m.Spend(1)
}

// index returns the position of a value in a list, from its start or its end; -1 if the list does not have it.
func (m *Meter) index(list traits.Lister, item ref.Val, last bool) types.Int {
	size, _ := list.Size().(types.Int)
	for n := range size {
		i := n
		if last {
			i = size - 1 - n
		}
		if m.Equal(list.Get(i), item) == types.True {
			return i
		}
		if m.left < 0 {
			break
		}
	}
	return -1
}

// contains reports whether a value is in a list. It compares by the value, as the library does, and parts
// of custom objects their own.
func (m *Meter) contains(list traits.Lister, item ref.Val) bool {
	if isData(list) {
		return m.index(list, item, false) >= 0
	}
	size, _ := list.Size().(types.Int)
	for i := types.Int(0); i < size && m.left >= 0; i++ {
		if m.Equal(item, list.Get(i)) == types.True {
			return true
		}
	}
	return false
}

// subset reports whether all values of one list, or any of them, are in the other.
func (m *Meter) subset(of, in traits.Lister, any bool) bool {
	for it := of.Iterator(); it.HasNext() == types.True && m.left >= 0; {
		if m.contains(in, it.Next()) == any {
			return any
		}
	}
	return !any
}
