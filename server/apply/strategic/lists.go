package strategic

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/mergepatch"
)

// list merges a list of a patch into that of the object. before is the former order of the items.
func (m merger) list(f *field, live, patch []any, deletes bool) (merged, before []any, err error) {
	if f.strategy != "merge" && !deletes {
		return patch, live, nil
	}
	if len(live) == 0 && len(patch) == 0 {
		return live, live, nil
	}
	if err := m.Spend(stepsOfItem * (len(live) + len(patch))); err != nil {
		return nil, nil, err
	}
	t, err := elementType(live, patch)
	switch {
	case err != nil:
		return nil, nil, err
	case t.Kind() != reflect.Map:
		merged, err = f.mergeScalars(live, patch, deletes)
		return merged, live, err
	case f.key == "":
		return nil, nil, fmt.Errorf("cannot merge lists without merge key for %s", f.typ.Kind())
	}
	kept, plain, replace, err := f.direct(live, patch)
	if err != nil {
		return nil, nil, err
	}
	if replace {
		merged, err = f.arrange(plain, nil, plain)
		return merged, live, err
	}
	all, err := m.items(f, kept, plain)
	if err != nil {
		return nil, nil, err
	}
	merged, err = f.arrange(all, plain, kept)
	// The library adds items in the memory that deleted ones leave, and so they count as
	// old there.
	return merged, all[:min(len(live), len(all))], err
}

func (f *field) mergeScalars(live, patch []any, deletes bool) ([]any, error) {
	if deletes {
		gone, err := positions(patch, "")
		if err != nil {
			return nil, err
		}
		return slices.DeleteFunc(live, func(item any) bool { _, ok := gone[item]; return ok }), nil
	}
	merged, err := unite(live, patch)
	if err != nil {
		return nil, err
	}
	return f.arrange(merged, patch, live)
}

// unite lists every scalar of both once.
func unite(live, patch []any) ([]any, error) {
	seen := make(map[any]bool, len(live)+len(patch))
	out := make([]any, 0, len(live)+len(patch))
	for _, items := range [][]any{live, patch} {
		for _, item := range items {
			if !isScalar(item) {
				return nil, ErrNoScalar
			}
			if !seen[item] {
				seen[item] = true
				out = append(out, item)
			}
		}
	}
	return out, nil
}

// direct executes the directives among a patch's items, and returns the others: plain. Directives may
// make those replace all items.
func (f *field) direct(live, patch []any) (kept, plain []any, replace bool, err error) {
	plain = make([]any, 0, len(patch))
	gone := map[any]bool{}
	for _, item := range patch {
		m := item.(map[string]any)
		directive, ok := m[marker]
		if !ok {
			plain = append(plain, item)
			continue
		}
		switch directive {
		case "delete":
			key, err := keyIn(m, f.key)
			if err != nil {
				return nil, nil, false, err
			}
			gone[key] = true
		case "replace":
			replace = true
		case "merge":
			return nil, nil, false, errors.New("merging lists cannot yet be specified in the patch")
		default:
			return nil, nil, false, mergepatch.ErrBadPatchType(directive, m)
		}
	}
	if len(gone) == 0 || replace {
		return live, plain, replace, nil
	}
	kept = make([]any, 0, len(live))
	for _, item := range live {
		if key := item.(map[string]any)[f.key]; !isScalar(key) || !gone[key] {
			kept = append(kept, item)
		}
	}
	return kept, plain, false, nil
}

// items merges the items of a patch into those with the same key, or adds them.
func (m merger) items(f *field, live, patch []any) ([]any, error) {
	if len(patch) == 0 {
		return live, nil
	}
	at := make(map[any]int, len(live)+len(patch))
	for i, item := range live {
		if key := item.(map[string]any)[f.key]; isScalar(key) {
			if _, ok := at[key]; !ok {
				at[key] = i
			}
		}
	}
	merged := slices.Clone(live) // live keeps its order
	for _, item := range patch {
		change := item.(map[string]any)
		key, err := keyIn(change, f.key)
		if err != nil {
			return nil, err
		}
		i, ok := at[key]
		if !ok {
			at[key] = len(merged)
			merged = append(merged, item)
			continue
		}
		both, err := m.object(merged[i].(map[string]any), change, f.typ)
		if err != nil {
			return nil, err
		}
		merged[i] = both
	}
	return merged, nil
}

// elementType returns the one type of all items of two lists.
func elementType(a, b []any) (reflect.Type, error) {
	var t reflect.Type
	for _, items := range [][]any{a, b} {
		for _, item := range items {
			it := reflect.TypeOf(item)
			switch {
			case t == nil && it != nil && it.Kind() == reflect.Slice:
				return nil, mergepatch.ErrNoListOfLists
			case it == nil || t != nil && it != t:
				return nil, fmt.Errorf("list element types are not identical: %v", fmt.Sprint([][]any{a, b}))
			}
			t = it
		}
	}
	if t == nil {
		return nil, fmt.Errorf("no elements in any of the given slices")
	}
	return t, nil
}

// ErrNoScalar means that an item of a list cannot be compared with others.
var ErrNoScalar = errors.New("the key of a list item must be a scalar")

// keyIn returns the value of an item's key; a scalar is its own.
func keyIn(item any, key string) (any, error) {
	if key == "" {
		if !isScalar(item) {
			return nil, ErrNoScalar
		}
		return item, nil
	}
	m, ok := item.(map[string]any)
	if !ok {
		return nil, mergepatch.ErrBadArgType(m, item)
	}
	value, ok := m[key]
	if !ok {
		return nil, mergepatch.ErrNoMergeKey(m, key)
	}
	if !isScalar(value) {
		return nil, ErrNoScalar
	}
	return value, nil
}

// isScalar reports values that can be compared. Null is one: it equals itself.
func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
