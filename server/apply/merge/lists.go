package merge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/mergepatch"
)

// merge merges a list of a patch into that of the object. before is the order that the
// items had.
func (f *field) merge(live, patch []any, deletes bool) (merged, before []any, err error) {
	if f.strategy != "merge" && !deletes {
		return patch, live, nil
	}
	if len(live) == 0 && len(patch) == 0 {
		return live, live, nil
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
	all, err := f.mergeItems(kept, plain)
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

// direct does what the items of a patch say that are directives, and returns the
// others: plain. They may say that those replace all.
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

// mergeItems merges the items of a patch into those with the same key, or adds them.
func (f *field) mergeItems(live, patch []any) ([]any, error) {
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
	merged := slices.Clone(live) // live goes on to say in which order its items are
	for _, item := range patch {
		m := item.(map[string]any)
		key, err := keyIn(m, f.key)
		if err != nil {
			return nil, err
		}
		i, ok := at[key]
		if !ok {
			at[key] = len(merged)
			merged = append(merged, item)
			continue
		}
		both, err := Strategic(merged[i].(map[string]any), m, f.typ)
		if err != nil {
			return nil, err
		}
		merged[i] = both
	}
	return merged, nil
}

// ordered merges a list for which a patch gives the wanted order.
func (f *field) ordered(live []any, hasLive bool, patch []any, hasPatch bool, wanted []any) (merged []any, err error) {
	before := live
	switch {
	case !hasPatch:
		merged = live
	case !hasLive:
		value, _ := undirected(patch)
		merged = value.([]any)
	default:
		if merged, before, err = f.merge(live, patch, false); err != nil {
			return nil, err
		}
	}
	if _, err := elementType(live, patch); err != nil {
		return nil, err
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
			// What a directive stands for need not be among them.
			if directive, ok := m[marker]; ok && (directive == "delete" || next < len(wanted)) {
				continue
			}
		}
		key, err := keyIn(item, f.key)
		if err != nil {
			return err
		}
		for found := false; !found; next++ {
			if next == len(wanted) {
				return fmt.Errorf("The order in patch list:\n%v\n doesn't match %s list:\n%v\n", patch, setOrder, wanted)
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

// positions is where each key occurs first.
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

// ErrNoScalar is returned where an item of a list cannot be told from others.
var ErrNoScalar = errors.New("the key of a list item must be a scalar")

// keyIn is the value of an item's key; a scalar is its own.
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

// isScalar tells values that can be compared. Null is one: it equals itself.
func isScalar(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}
