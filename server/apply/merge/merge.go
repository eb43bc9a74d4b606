// Package merge applies strategic merge patches to objects in the form of JSON trees.
//
// It promises what k8s.io/apimachinery/pkg/util/strategicpatch does with the same
// patch, its errors included, in time that grows with the size of both and not with
// the product of their lists, and an error where that panics. Two corners differ: items
// that no list gives an order stay in theirs, and an item that one patch deletes and
// adds again counts as new.
package merge

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/mergepatch"
)

// The words of a patch that are no fields.
const (
	marker     = "$patch"
	retainKeys = "$retainKeys"
	deleteFrom = "$deleteFromPrimitiveList"
	setOrder   = "$setElementOrder"
)

// Strategic merges patch into live, which stands for a struct of type t, and returns
// the result. Both are changed and must not be used afterwards. Values are those that
// JSON has, numbers int64 or float64.
func Strategic(live, patch map[string]any, t reflect.Type) (map[string]any, error) {
	if directive, ok := patch[marker]; ok {
		switch directive {
		case "replace":
			delete(patch, marker)
			return patch, nil
		case "delete":
			return map[string]any{}, nil
		}
		return nil, mergepatch.ErrBadPatchType(directive, patch)
	}
	if live == nil {
		live = map[string]any{}
	}
	if err := retain(live, patch); err != nil {
		return nil, err
	}
	if err := mergeOrdered(live, patch, t); err != nil {
		return nil, err
	}
	for name, value := range patch {
		deletes := strings.HasPrefix(name, deleteFrom)
		if deletes {
			var ok bool
			if name, ok = strings.CutPrefix(name, deleteFrom+"/"); !ok {
				return nil, mergepatch.ErrBadPatchFormatForPrimitiveList
			}
		}
		if err := mergeField(live, name, value, t, deletes); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// retain removes the fields that a patch does not list as those to keep.
func retain(live, patch map[string]any) error {
	names, ok := patch[retainKeys]
	if !ok {
		return nil
	}
	delete(patch, retainKeys)
	list, ok := names.([]any)
	if !ok {
		return mergepatch.ErrBadPatchFormatForRetainKeys
	}
	keep := make(map[string]bool, len(list))
	for _, name := range list {
		if name, ok := name.(string); ok {
			keep[name] = true
		}
	}
	for name, value := range patch {
		if value != nil && !keep[name] && !strings.HasPrefix(name, deleteFrom) && !strings.HasPrefix(name, setOrder) {
			return mergepatch.ErrBadPatchFormatForRetainKeys
		}
	}
	for name := range live {
		if !keep[name] {
			delete(live, name)
		}
	}
	return nil
}

// mergeField merges one field. deletes says that value lists what leaves it.
func mergeField(live map[string]any, name string, value any, t reflect.Type, deletes bool) error {
	if value == nil {
		delete(live, name)
		return nil
	}
	have, ok := live[name]
	if !ok || reflect.TypeOf(have) != reflect.TypeOf(value) {
		if !deletes {
			dropNulls(value)
			set(live, name, value)
		}
		return nil
	}
	var err error
	switch value := value.(type) {
	case map[string]any:
		f, e := object(t, name)
		if e != nil {
			return e
		}
		if f.strategy == "replace" {
			live[name] = value
			return nil
		}
		live[name], err = Strategic(have.(map[string]any), value, f.typ)
	case []any:
		f, e := list(t, name)
		if e != nil {
			return e
		}
		live[name], _, err = f.merge(have.([]any), value, deletes)
	default:
		live[name] = value
	}
	return err
}

func set(live map[string]any, name string, value any) {
	if value, keep := undirected(value); keep {
		live[name] = value
	} else {
		delete(live, name)
	}
}

// undirected is a value without the parts that only direct a patch; keep is false if
// that is all of it.
func undirected(value any) (_ any, keep bool) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value[marker]; ok {
			return nil, false
		}
		for name, inner := range value {
			set(value, name, inner)
		}
	case []any:
		out := make([]any, 0, len(value))
		for _, item := range value {
			if item, keep := undirected(item); keep {
				out = append(out, item)
			}
		}
		return out, true
	}
	return value, true
}

// dropNulls removes the fields that a patch wants gone from a part of it that meets
// nothing to remove them from.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if inner == nil {
				delete(value, name)
			} else {
				dropNulls(inner)
			}
		}
	case []any:
		for _, item := range value {
			dropNulls(item)
		}
	}
}

// mergeOrdered merges the lists for which a patch says in which order their items
// shall be, and takes them from the patch.
func mergeOrdered(live, patch map[string]any, t reflect.Type) error {
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
		f, err := list(t, name)
		if err != nil {
			return err
		}
		if err := f.follows(change, wanted); err != nil {
			return err
		}
		if !hasLive && !hasPatch {
			continue
		}
		merged, err := f.ordered(have, hasLive, change, hasPatch, wanted)
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

// elementType is the one type of all items of two lists.
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
