package strategic

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/mergepatch"
)

// orderedLists merges the lists whose order a patch defines, and removes them from the patch.
func (m merger) orderedLists(live, patch map[string]any, t reflect.Type) error {
	for name, order := range patch {
		if !strings.HasPrefix(name, setOrder) {
			continue
		}
		delete(patch, name)
		wanted, ok := order.([]any)
		if !ok {
			return mergepatch.ErrBadArgType(wanted, order)
		}
		name, ok := strings.CutPrefix(name, setOrder+"/")
		if !ok {
			return mergepatch.ErrBadPatchFormatForSetElementOrderList
		}
		have, hasLive, err := listAt(live, name)
		if err != nil {
			return err
		}
		change, hasPatch, err := listAt(patch, name)
		if err != nil {
			return err
		}
		f, err := listField(t, name)
		if err != nil {
			return err
		}
		if err := m.Spend(stepsOfItem * (len(have) + len(change) + len(wanted))); err != nil {
			return err
		}
		if err := f.follows(change, wanted); err != nil {
			return err
		}
		if !hasLive && !hasPatch {
			continue
		}
		merged, err := m.ordered(f, have, hasLive, change, hasPatch, wanted)
		if err != nil {
			return err
		}
		live[name] = merged
		delete(patch, name)
	}
	return nil
}

func listAt(tree map[string]any, name string) (list []any, ok bool, err error) {
	value, ok := tree[name]
	if !ok {
		return nil, false, nil
	}
	list, isList := value.([]any)
	if !isList {
		return nil, false, mergepatch.ErrBadArgType(list, value)
	}
	return list, true, nil
}

// ordered merges a list whose order a patch defines.
func (m merger) ordered(f *field, live []any, hasLive bool, patch []any, hasPatch bool, wanted []any) (merged []any, err error) {
	before := live
	switch {
	case !hasPatch:
		merged = live
	case !hasLive:
		value, _ := undirected(patch)
		merged = value.([]any)
	default:
		if merged, before, err = m.list(f, live, patch, false); err != nil {
			return nil, err
		}
	}
	if _, err := elementType(live, patch); err != nil {
		return nil, err
	}
	for i, item := range wanted {
		if _, ok := item.(map[string]any); !ok && f.key != "" {
			return nil, fmt.Errorf("value for key %v is not a map", i)
		}
	}
	return f.arrange(merged, wanted, before)
}

// follows checks that the items of a patch are among the wanted ones, in their order.
func (f *field) follows(patch, wanted []any) error {
	if len(wanted) == 0 || len(patch) == 0 {
		return nil
	}
	next := 0
	for _, item := range patch {
		if m, ok := item.(map[string]any); ok {
			// The item of a directive need not be among them.
			if directive, ok := m[marker]; ok && (directive == "delete" || next < len(wanted)) {
				continue
			}
		}
		for found := false; !found; next++ {
			if next == len(wanted) {
				return fmt.Errorf("The order in patch list:\n%v\n doesn't match %s list:\n%v\n", patch, setOrder, wanted)
			}
			key, err := keyIn(item, f.key)
			if err != nil {
				return err
			}
			other, err := keyIn(wanted[next], f.key)
			if err != nil {
				return err
			}
			found = key == other
		}
	}
	return nil
}

// arrange puts items that order names into that order, and the others between them
// where they were in live.
func (f *field) arrange(items, order, live []any) ([]any, error) {
	wanted, err := positions(order, f.key)
	if err != nil {
		return nil, err
	}
	before, err := positions(live, f.key)
	if err != nil {
		return nil, err
	}
	named, others := make([]placed, 0, len(items)), make([]placed, 0, len(items))
	for _, item := range items {
		key, err := keyIn(item, f.key)
		if err != nil {
			return nil, err
		}
		was := placeOf(before, key)
		if place, ok := wanted[key]; ok {
			named = append(named, placed{item, place, was})
		} else {
			others = append(others, placed{item, was, was})
		}
	}
	inOrder := func(a, b placed) int { return a.place - b.place }
	slices.SortStableFunc(named, inOrder)
	slices.SortStableFunc(others, inOrder)
	out := make([]any, 0, len(items))
	for len(named) > 0 && len(others) > 0 {
		if n, o := named[0].was, others[0].was; n != nowhere && o < n {
			out, others = append(out, others[0].item), others[1:]
		} else {
			out, named = append(out, named[0].item), named[1:]
		}
	}
	for _, rest := range [][]placed{named, others} {
		for _, p := range rest {
			out = append(out, p.item)
		}
	}
	return out, nil
}

// placed is an item with its place in the list that orders it, and in the live one.
type placed struct {
	item       any
	place, was int
}

const nowhere = int(^uint(0) >> 2) // behind all that are somewhere

func placeOf(places map[any]int, key any) int {
	if i, ok := places[key]; ok {
		return i
	}
	return nowhere
}

// positions returns where each key occurs first.
func positions(items []any, key string) (map[any]int, error) {
	at := make(map[any]int, len(items))
	for i, item := range items {
		k, err := keyIn(item, key)
		if err != nil {
			return nil, err
		}
		if _, ok := at[k]; !ok {
			at[k] = i
		}
	}
	return at, nil
}
