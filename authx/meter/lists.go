package meter

import (
	"math/bits"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// flatSteps is the price of an element in a list that is made of others, or of nothing.
const flatSteps = 2

// ranged measures lists.range.
func ranged(m *Meter, args []ref.Val) ref.Val {
	if n, ok := args[0].(types.Int); ok && n > 0 {
		m.spendProduct(int(n), flatSteps)
	}
	return nil
}

// flattened measures flatten: one list may be in another very often.
func flattened(m *Meter, args []ref.Val) ref.Val {
	depth := types.Int(1)
	if len(args) > 1 {
		n, ok := args[1].(types.Int)
		if !ok {
			return nil
		}
		depth = n
	}
	if list, ok := args[0].(traits.Lister); ok {
		m.flatten(list, depth, flatSteps)
	}
	return nil
}

// flatten takes steps for each element of a list. Each level copies those of the levels below.
func (m *Meter) flatten(list traits.Lister, depth types.Int, each int) bool {
	for it := list.Iterator(); it.HasNext() == types.True; {
		if !m.Spend(each) {
			return false
		}
		if inner, ok := it.Next().(traits.Lister); ok && depth > 0 && !m.flatten(inner, depth-1, each+1) {
			return false
		}
	}
	return true
}

// distinct returns the elements of a list without those that are equal to an earlier one.
func distinct(m *Meter, args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok || list.Size() == types.IntZero {
		return nil
	}
	size, _ := list.Size().(types.Int)
	unique := make([]ref.Val, 0, min(size, maxJoined))
	for i := types.Int(0); i < size && m.left >= 0; i++ {
		v, seen := list.Get(i), false
		for j := 0; j < len(unique) && !seen && m.left >= 0; j++ {
			seen = m.Equal(v, unique[j]) == types.True
		}
		if !seen {
			unique = append(unique, v)
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(unique)
}

// sorted measures the comparisons by which the last list is sorted.
func sorted(m *Meter, args []ref.Val) ref.Val {
	keys, ok := args[len(args)-1].(traits.Lister)
	if !ok {
		return nil
	}
	size, _ := keys.Size().(types.Int)
	rounds := bits.Len(uint(size))
	for i := types.Int(0); i < size && m.spendProduct(rounds, 1+length(keys.Get(i))/sameBytes); i++ {
	}
	return nil
}
