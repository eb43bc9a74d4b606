// Package strategic merges strategic merge patches into objects in the form of JSON trees.
//
// Merge returns the result of strategicpatch of apimachinery for the same patch, its errors included, and an
// error where that panics. Two corner cases differ: items whose order no list defines keep their order, and
// an item that one patch deletes and adds again counts as new. The library compares each item of a list with
// every other; here the time grows linearly with the size of the object and the patch.
//
// The tags of the Go types define how a field is merged (its strategy, and the key of a list's items).
// The library reads them, and fields.go caches the result.
// There are no goroutines; the only lock is that of this cache.
package strategic

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/mergepatch"

	"github.com/rowlock/rowlock/codecs/budget"
)

// Names in a patch that are not fields: directives.
const (
	marker     = "$patch"
	retainKeys = "$retainKeys"
	deleteFrom = "$deleteFromPrimitiveList"
	setOrder   = "$setElementOrder"
)

// Merge merges patch into live, the tree of a struct of type t, and returns
// the result. Both are changed and must not be used afterwards. Values are those that
// JSON has, numbers int64 or float64.
//
// Time grows with the size of both, but where many items of a patch have one key, and are
// all merged into the same item. So work is counted, and the error may be of the budget.
func Merge(b *budget.Budget, live, patch map[string]any, t reflect.Type) (map[string]any, error) {
	return merger{b}.object(live, patch, t)
}

// merger is one merge. It spends a step for each name and stepsOfItem for each item that it
// looks at.
type merger struct{ *budget.Budget }

// stepsOfItem is the cost of a list item, which is put into one or two maps.
const stepsOfItem = 4

// object merges a patch, or a part of one, into the object that it is for.
func (m merger) object(live, patch map[string]any, t reflect.Type) (map[string]any, error) {
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
	if err := m.Spend(1 + len(patch)); err != nil {
		return nil, err
	}
	if err := m.retain(live, patch); err != nil {
		return nil, err
	}
	if err := m.orderedLists(live, patch, t); err != nil {
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
		if err := m.field(live, name, value, t, deletes); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// retain removes the fields that a patch does not list as those to keep.
func (m merger) retain(live, patch map[string]any) error {
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
	if err := m.Spend(len(live)); err != nil {
		return err
	}
	for name := range live {
		if !keep[name] {
			delete(live, name)
		}
	}
	return nil
}

// field merges one field. deletes means that value lists elements to delete.
func (m merger) field(live map[string]any, name string, value any, t reflect.Type, deletes bool) error {
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
		f, e := objectField(t, name)
		if e != nil {
			return e
		}
		if f.strategy == "replace" {
			live[name] = value
			return nil
		}
		live[name], err = m.object(have.(map[string]any), value, f.typ)
	case []any:
		f, e := listField(t, name)
		if e != nil {
			return e
		}
		live[name], _, err = m.list(f, have.([]any), value, deletes)
	default:
		live[name] = value
	}
	return err
}

// set gives a field a value of a patch that meets nothing to merge with.
func set(live map[string]any, name string, value any) {
	if value, keep := undirected(value); keep {
		live[name] = value
	} else {
		delete(live, name)
	}
}

// undirected returns a value without the parts that only direct a patch; keep is false if
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
