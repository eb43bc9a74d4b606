package expr

import (
	"context"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// MaxSteps is how many values the expressions of one decision may compare, and how many
// bytes of text they may make by formatting and replacing: work that has to do with what is
// in a value, while its price has to do with the length of the outermost list alone. Sixty
// lists, each of which has the one before it twice, cost sixty, and comparing them takes 2^60
// steps that no deadline ends.
const MaxSteps = 2_000_000

const noSteps = "the values are too large to be compared or formatted"

// meter counts such steps.
type meter struct {
	ctx  context.Context
	left int
	n    int
}

// spend takes steps, and says whether there were as many.
func (m *meter) spend(steps int) bool {
	if m.left < 0 || steps < 0 || steps > m.left {
		m.left = -1
		return false
	}
	m.left -= steps
	if m.n++; m.n%1024 == 0 && m.ctx.Err() != nil {
		m.left = -1
	}
	return m.left >= 0
}

// check ends the evaluation where there were not enough steps, as an expression ends that
// costs too much. An error would not do: finding the price of what failed may take as long.
func (m *meter) check() {
	if m.left < 0 {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: noSteps})
	}
}

// meterName is no name that an expression could have.
const meterName = "#meter"

// meterOf finds the meter of an evaluation.
func meterOf(in interpreter.Activation) *meter {
	if v, ok := in.ResolveName(meterName); ok {
		if m, ok := v.(*meter); ok {
			return m
		}
	}
	return &meter{ctx: context.Background(), left: MaxSteps}
}

// holds says of a value that other values are in it.
func holds(v ref.Val) bool {
	switch v.(type) {
	case traits.Lister, traits.Mapper, *types.Optional, *made:
		return true
	}
	return false
}

// equal is types.Equal, step by step.
func (m *meter) equal(a, b ref.Val) ref.Val {
	if !m.spend(1) {
		return types.NewErr(noSteps)
	}
	switch x := a.(type) {
	case *made:
		return m.equalMade(x, b)
	case *types.Optional:
		y, ok := b.(*types.Optional)
		if !ok || !x.HasValue() || !y.HasValue() {
			return types.Bool(ok && !x.HasValue() && !y.HasValue())
		}
		return m.equal(x.GetValue(), y.GetValue())
	case traits.Lister:
		y, ok := b.(traits.Lister)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		size, _ := x.Size().(types.Int)
		return m.all(func(yield func(a, b ref.Val) bool) {
			for i := types.Int(0); i < size && yield(x.Get(i), y.Get(i)); i++ {
			}
		})
	case traits.Mapper:
		y, ok := b.(traits.Mapper)
		if !ok || x.Size() != y.Size() {
			return types.False
		}
		return m.all(func(yield func(a, b ref.Val) bool) {
			for it := x.Iterator(); it.HasNext() == types.True; {
				key := it.Next()
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

// equalMade compares objects that an expression made.
func (m *meter) equalMade(x *made, b ref.Val) ref.Val {
	y, ok := b.(*made)
	if !ok || x.typ.TypeName() != y.typ.TypeName() || len(x.fields) != len(y.fields) {
		return types.False
	}
	return m.all(func(yield func(a, b ref.Val) bool) {
		for name, v := range x.fields {
			if !yield(v, y.fields[name]) {
				return
			}
		}
	})
}

// all says whether all of some pairs are equal; nil is equal to nothing.
func (m *meter) all(pairs func(yield func(a, b ref.Val) bool)) ref.Val {
	result := ref.Val(types.True)
	pairs(func(a, b ref.Val) bool {
		if b == nil || m.equal(a, b) == types.False {
			result = types.False
		} else if m.left < 0 {
			result = types.NewErr(noSteps)
		}
		return result == types.True
	})
	return result
}

// index is where a value is in a list, from its start or its end; -1 where it is not.
func (m *meter) index(list traits.Lister, item ref.Val, last bool) types.Int {
	size, _ := list.Size().(types.Int)
	for n := range size {
		i := n
		if last {
			i = size - 1 - n
		}
		if m.equal(list.Get(i), item) == types.True {
			return i
		}
		if m.left < 0 {
			break
		}
	}
	return -1
}

// subset says whether all values of one list, or any of them, are in the other.
func (m *meter) subset(of, in traits.Lister, any bool) bool {
	for it := of.Iterator(); it.HasNext() == types.True && m.left >= 0; {
		if found := m.index(in, it.Next(), false) >= 0; found == any {
			return any
		}
	}
	return !any
}

// walk takes steps for all values in a value, and for the bytes of their text.
func (m *meter) walk(v ref.Val, text bool) bool {
	switch v := v.(type) {
	case types.String:
		return m.spend(1) && (!text || m.spend(len(v)))
	case types.Bytes:
		return m.spend(1) && (!text || m.spend(len(v)))
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
	return m.spend(1)
}

// precisions takes steps for the digits that a format asks for.
func (m *meter) precisions(format string) bool {
	for {
		_, after, found := strings.Cut(format, "%.")
		if !found {
			return true
		}
		digits := 0
		for after != "" && after[0] >= '0' && after[0] <= '9' {
			digits = min(digits*10+int(after[0]-'0'), MaxSteps)
			after = after[1:]
		}
		if !m.spend(digits) {
			return false
		}
		format = after
	}
}

// replaced takes steps for the text that is to be made of another, at most limit times; all
// for a negative limit.
func (m *meter) replaced(text, old, by string, limit int) bool {
	times := strings.Count(text, old)
	if limit >= 0 {
		times = min(times, limit)
	}
	return by == "" || times == 0 || times <= m.left/len(by) && m.spend(times*len(by)) || m.spend(-1)
}
