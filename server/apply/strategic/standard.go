package strategic

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/rowlock/rowlock/codecs/budget"
)

// Standard is the merge of apimachinery. It is bounded by a look at the patch before.
type Standard struct{}

// Merge does what Own.Merge does. The error is of the budget for a patch that would take
// the library too long.
func (Standard) Merge(b *budget.Budget, live, patch map[string]any, t reflect.Type) (out map[string]any, err error) {
	w := weigher{b}
	if err := w.object(live, patch, t, 0); err != nil {
		return nil, err
	}
	defer func() {
		if reason := recover(); reason != nil {
			out, err = nil, panicked(reason)
		}
	}()
	return strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(live, patch, strategicpatch.PatchMetaFromStruct{T: t})
}

// panicked is the error for what the library panics on: keys and items of lists that
// cannot be compared, and null among those that are all of one type.
func panicked(reason any) error {
	err, ok := reason.(runtime.Error)
	switch {
	case ok && strings.Contains(err.Error(), "uncomparable"), ok && strings.Contains(err.Error(), "unhashable"):
		return ErrNoScalar
	case ok && strings.Contains(err.Error(), "nil pointer"):
		return errors.New("list element types are not identical")
	}
	return fmt.Errorf("merging failed: %v", reason)
}

// weigher counts what merging takes the library, which has no bounds: it compares each item
// of a list with each, in the object, in the patch and in the order that the patch wants.
// So a list costs the square of their numbers. Everything is spent before anything is done.
type weigher struct{ *budget.Budget }

// object counts for a part of a patch and the object that it is for. extra bounds how many
// items other parts of the patch may have added to each of the lists in that object.
func (w weigher) object(live, patch map[string]any, t reflect.Type, extra int) error {
	if err := w.Spend(1 + len(patch) + len(live)); err != nil {
		return err
	}
	for name, value := range patch {
		switch value := value.(type) {
		case map[string]any:
			have, ok := live[name].(map[string]any)
			if !ok && extra == 0 {
				continue // it becomes what the patch says
			}
			f, err := objectField(t, name)
			if err != nil {
				continue // so says the library
			}
			if err := w.object(have, value, f.typ, extra); err != nil {
				return err
			}
		case []any:
			if err := w.list(live, patch, name, value, t, extra); err != nil {
				return err
			}
		}
	}
	return nil
}

// list counts for one list of a patch: of items, of those to delete, or of the order that
// they shall have.
func (w weigher) list(live, patch map[string]any, name string, value []any, t reflect.Type, extra int) error {
	if field, deletes := strings.CutPrefix(name, deleteFrom+"/"); deletes {
		have, _ := live[field].([]any)
		return w.Spend(stepsOfItem * (len(have) + len(value) + extra))
	}
	field, ordered := strings.CutPrefix(name, setOrder+"/")
	items, _ := patch[field].([]any)
	if ordered && items != nil {
		return nil // counted with the items
	}
	have, _ := live[field].([]any)
	order, _ := patch[setOrder+"/"+field].([]any)
	n := len(have) + len(items) + len(order) + extra
	if err := w.Spend(n * n); err != nil || ordered {
		return err
	}
	f, err := listField(t, name)
	if err != nil || f.key == "" {
		return nil
	}
	return w.items(have, value, f, extra)
}

// items counts for the items of a patch that are merged into those with the same keys.
func (w weigher) items(live, patch []any, f *field, extra int) error {
	at := make(map[any]map[string]any, len(live))
	for _, item := range live {
		if m, ok := item.(map[string]any); ok && isScalar(m[f.key]) && at[m[f.key]] == nil {
			at[m[f.key]] = m
		}
	}
	added := map[any]int{} // by earlier items with the same key
	for _, item := range patch {
		m, ok := item.(map[string]any)
		if !ok || !isScalar(m[f.key]) {
			continue
		}
		key := m[f.key]
		if err := w.object(at[key], m, f.typ, extra+added[key]); err != nil {
			return err
		}
		n := itemsIn(m)
		if err := w.Spend(n); err != nil {
			return err
		}
		added[key] += n
	}
	return nil
}

// itemsIn is how many items there are in all lists of a value.
func itemsIn(value any) int {
	n := 0
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			n += itemsIn(inner)
		}
	case []any:
		n = len(value)
		for _, inner := range value {
			n += itemsIn(inner)
		}
	}
	return n
}
