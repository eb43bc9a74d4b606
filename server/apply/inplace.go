package apply

import (
	"context"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/quantities"
)

// changeInPlace applies a merge patch, strategic or not, to a copy of current, and converts
// only the parts that the patch names. It reports false for whatever is not plain: an
// error, an unknown or duplicate field, a directive. Then the whole object is patched, by
// which the client is told what is wrong, or which is what those patches need.
func (p *Patcher) changeInPlace(ctx context.Context, patch *Patch, current runtime.Object) (runtime.Object, bool) {
	if _, custom := current.(*unstructured.Unstructured); custom || keepsSpelling(reflect.TypeOf(current).Elem()) {
		return nil, false
	}
	if out, ok := changeDirectly(patch, current); ok {
		return out, true
	}
	return p.changeByTree(ctx, patch, current)
}

// changeByTree is changeInPlace for patches that have to be trees.
func (p *Patcher) changeByTree(ctx context.Context, patch *Patch, current runtime.Object) (runtime.Object, bool) {
	tree, ok := decodeTree(patch.Body)
	if !ok {
		return nil, false
	}
	work := budget.New(ctx, strategicWork) // of all parts together
	merge := partMerger(func(live, part map[string]any, t reflect.Type) (map[string]any, error) {
		return p.merger.Merge(work, live, part, t)
	})
	if patch.Type == codecs.PatchMerge {
		merge = mergeTrees
		if !plainNumbers(tree) {
			return nil, false
		}
	}
	patched := current.DeepCopyObject()
	if !merge.patchStruct(reflect.ValueOf(patched).Elem(), tree) {
		return nil, false
	}
	return patched, true
}

// keepsSpelling tells types with a field that holds JSON as it was written. A patch
// writes all of an object anew, so that the spelling changes where it was another.
func keepsSpelling(object reflect.Type) bool {
	for i := range object.NumField() {
		if object.Field(i).Type == reflect.TypeFor[runtime.RawExtension]() {
			return true
		}
	}
	return false
}

// partMerger merges the part of a patch that is for the fields of one struct of type t,
// given as trees.
type partMerger func(live, part map[string]any, t reflect.Type) (map[string]any, error)

// mergeTrees is RFC 7386.
func mergeTrees(live, part map[string]any, _ reflect.Type) (map[string]any, error) {
	if live == nil {
		live = map[string]any{}
	}
	for name, value := range part {
		switch value := value.(type) {
		case nil:
			delete(live, name)
		case map[string]any:
			inner, _ := live[name].(map[string]any)
			live[name], _ = mergeTrees(inner, value, nil)
		default:
			live[name] = value
		}
	}
	return live, nil
}

// plainNumbers tells trees whose numbers mean the same to every decoder: integers
// that fit 32 bits.
func plainNumbers(node any) bool {
	switch node := node.(type) {
	case map[string]any:
		for _, v := range node {
			if !plainNumbers(v) {
				return false
			}
		}
	case []any:
		for _, v := range node {
			if !plainNumbers(v) {
				return false
			}
		}
	case float64:
		return false
	case int64:
		return node >= 0 && node <= math.MaxInt32
	}
	return true
}

const elementOrder = "$setElementOrder/"

// patchStruct descends to the structs that the patch changes. Their lists, maps and
// scalars are converted to trees and merged, those of one struct together.
func (m partMerger) patchStruct(v reflect.Value, patch map[string]any) bool {
	fields := patchFieldsOf(v.Type())
	part := map[string]any{}  // of the patch, to be merged as a tree
	named := map[string]int{} // fields that part is about
	merge := false
	for key, value := range patch {
		name, ordered := strings.CutPrefix(key, elementOrder)
		i, known := fields.index[name]
		if !known {
			return false
		}
		field := v.Field(i)
		switch value := value.(type) {
		case nil:
			field.SetZero()
			continue
		case map[string]any:
			if inner, ok := descend(field); ok && !fields.tagged[i] {
				if !m.patchStruct(inner, value) {
					return false
				}
				continue
			}
			merge = true
		case []any:
			merge = true
		}
		merge = merge || ordered
		part[key], named[name] = value, i
	}
	return len(part) == 0 || m.patchPart(v, part, named, merge)
}

// descend finds the struct in a field, if one is there.
func descend(field reflect.Value) (reflect.Value, bool) {
	if field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return field, false
		}
		field = field.Elem()
	}
	return field, field.Kind() == reflect.Struct && !patchFieldsOf(field.Type()).opaque
}

// patchPart merges part into the named fields of a struct.
func (m partMerger) patchPart(v reflect.Value, part map[string]any, named map[string]int, merge bool) bool {
	scratch := reflect.New(v.Type())
	if merge {
		for _, i := range named {
			scratch.Elem().Field(i).Set(v.Field(i))
		}
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(scratch.Interface())
		if err != nil {
			return false
		}
		maps.DeleteFunc(tree, func(name string, _ any) bool { _, ok := named[name]; return !ok })
		if part, err = m(tree, part, v.Type()); err != nil {
			return false
		}
		scratch.Elem().SetZero()
	}
	if quantities.CheckTree(part, v.Type()) != nil {
		return false
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(part, scratch.Interface(), true); err != nil {
		return false
	}
	for _, i := range named {
		v.Field(i).Set(scratch.Elem().Field(i))
	}
	return true
}

// patchFields is what patchStruct must know of a struct type.
type patchFields struct {
	index  map[string]int // direct JSON fields; inlined ones are left to a patch of the whole
	tagged []bool         // fields with a strategy for merging of their own
	merged []bool         // those of them that are lists whose items are merged
	shown  []bool         // fields whose value is in the JSON even if it is null
	keys   []string       // the field of such items, of a kind of string, that tells them apart; "" for others
	opaque bool           // the type reads its own JSON
}

// patchFieldsKnown is a cache of a pure function of the type.
var patchFieldsKnown sync.Map // reflect.Type -> *patchFields

func patchFieldsOf(t reflect.Type) *patchFields {
	if known, ok := patchFieldsKnown.Load(t); ok {
		return known.(*patchFields)
	}
	n := t.NumField()
	out := &patchFields{index: map[string]int{}, tagged: make([]bool, n), merged: make([]bool, n), shown: make([]bool, n), keys: make([]string, n)}
	_, out.opaque = reflect.PointerTo(t).MethodByName("UnmarshalJSON")
	for i := range n {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			out.index[name] = i
			out.shown[i] = !slices.Contains(strings.Split(options, ","), "omitempty")
			out.tagged[i] = f.Tag.Get("patchStrategy") != ""
			out.merged[i] = f.Type.Kind() == reflect.Slice && slices.Contains(strings.Split(f.Tag.Get("patchStrategy"), ","), "merge")
			if key := f.Tag.Get("patchMergeKey"); out.merged[i] && toldBy(f.Type.Elem(), key) {
				out.keys[i] = key
			}
		}
	}
	patchFieldsKnown.Store(t, out)
	return out
}

// toldBy says that items of a type are told apart by a field that holds a string.
func toldBy(item reflect.Type, key string) bool {
	if item.Kind() != reflect.Struct {
		return false
	}
	for i := range item.NumField() {
		f := item.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == key && name != "" {
			return f.Type.Kind() == reflect.String
		}
	}
	return false
}
