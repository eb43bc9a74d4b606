package expr

import (
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// maxJoined is how many elements a list may have that is joined of others.
const maxJoined = 1 << 20

// joinFlat makes the lists that expressions join flat. Those of the library only remember
// their parts, and ask all of them whenever they are asked for anything: a list that is
// joined with itself some thirty times, which costs thirty by its count, answers never.
func joinFlat(i interpreter.Interpretable) (interpreter.Interpretable, error) {
	if call, ok := i.(interpreter.InterpretableCall); ok && call.Function() == operators.Add {
		return join{call}, nil
	}
	return i, nil
}

// join is an addition, of lists or of anything else.
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
