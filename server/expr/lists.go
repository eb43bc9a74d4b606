package expr

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// maxJoined is how many elements a list may have that is joined of others.
const maxJoined = 1 << 20

// join is an addition, of lists or of anything else. Lists are joined flat. Those of the
// library only remember their parts, and ask all of them whenever they are asked for anything:
// a list that is joined with itself some thirty times, which costs thirty by its count,
// answers never.
type join struct{ interpreter.InterpretableCall }

// Eval implements interpreter.Interpretable.
func (j join) Eval(in interpreter.Activation) ref.Val {
	sum := j.InterpretableCall.Eval(in)
	list, ok := sum.(traits.Lister)
	if !ok {
		return sum
	}
	if _, grows := sum.(traits.MutableLister); grows { // that of a macro, which is flat
		return sum
	}
	size, _ := list.Size().(types.Int)
	if size > maxJoined {
		return types.NewErr("a list of %d elements is too large", size)
	}
	flat := make([]ref.Val, size)
	for i := range flat {
		flat[i] = list.Get(types.Int(i))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, flat)
}
