package meter

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// maxJoined bounds the elements of a list that is joined of others.
const maxJoined = 1 << 20

// How much joined data is one step.
const (
	joinedItems = 2
	joinedBytes = 8 // the price of a join accounts for its bytes too
)

// join is an addition, of lists or of other values. It joins lists into a flat one. The library's lists only
// refer to their parts, and every operation visits all of these: a list that is joined with itself thirty
// times, which costs thirty by the library's count, never answers.
type join[F interpreter.Activation] struct{ interpreter.InterpretableCall }

// parted is the type of such lists, which has no name.
var parted = reflect.TypeOf(pair().Add(pair()))

func pair() traits.Lister {
	return types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{types.True})
}

// Exec is Eval.
func (j join[F]) Exec(frame F) ref.Val { return j.Eval(frame) }

// Eval implements interpreter.Interpretable.
func (j join[F]) Eval(in interpreter.Activation) ref.Val {
	sum := j.InterpretableCall.Eval(in)
	switch v := sum.(type) {
	case types.String:
		if len(v) >= joinedBytes {
			m := of(in)
			m.Spend(len(v) / joinedBytes)
			m.check()
		}
	case types.Bytes:
		m := of(in)
		m.Spend(len(v) / joinedBytes)
		m.check()
	case traits.MutableLister: // the result of a macro, which is flat
	case traits.Lister:
		return joined(of(in), v)
	}
	return sum
}

// joined returns a list that was just joined.
func joined(m *Meter, list traits.Lister) ref.Val {
	size, _ := list.Size().(types.Int)
	if size > maxJoined {
		return types.NewErr("a list of %d elements is too large", size)
	}
	m.Spend(int(size) / joinedItems)
	m.spendKeys(list)
	m.check()
	if reflect.TypeOf(list) != parted {
		return list
	}
	flat := make([]ref.Val, size)
	for i := range flat {
		flat[i] = list.Get(types.Int(i))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, flat)
}
