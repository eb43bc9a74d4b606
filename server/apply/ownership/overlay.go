package ownership

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
	"sigs.k8s.io/structured-merge-diff/v4/value"

	"github.com/rowlock/rowlock/server/schema"
)

// Overlay merges fields into an object as an apply does, but for that nobody comes to own
// them: this is what mutating policies do. Neither argument is changed. What would replace a
// list, a map or a struct as a whole is refused, as is what takes the library too long.
func Overlay(s *schema.Schemas, live runtime.Object, fields map[string]any) (map[string]any, error) {
	if err := checkFields(fields); err != nil {
		return nil, err
	}
	if err := checkFields(live); err != nil {
		return nil, err
	}
	patch, err := overlaid(s, live, &unstructured.Unstructured{Object: fields})
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if whole := wholes(nil, patch.Schema(), patch.TypeRef(), patch.AsValue()); len(whole) > 0 {
		slices.Sort(whole)
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %v", strings.Join(whole, ", "))
	}
	typedLive, err := overlaid(s, live, live)
	if err != nil {
		return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
	}
	merged, err := typedLive.Merge(patch)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	tree, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a merge gave a %T instead of an object", merged.AsValue().Unstructured())
	}
	return tree, nil
}

// overlaid gives an object the merge type of live.
func overlaid(s *schema.Schemas, live, obj runtime.Object) (*typed.TypedValue, error) {
	if _, tree := live.(*unstructured.Unstructured); tree {
		return s.ObjectToTyped(obj)
	}
	if r := s.Catalogue().LookupKind(live.GetObjectKind().GroupVersionKind()); r != nil && r.HasGoType() {
		return s.ObjectToTyped(obj)
	}
	return s.Typed(reflect.TypeOf(live).Elem(), obj) // the body of a subresource
}

// wholes are the paths of what is replaced as a whole where a value is merged: whoever writes
// a part of it does not know that the rest would go.
func wholes(path fieldpath.Path, s *smd.Schema, ref smd.TypeRef, v value.Value) []string {
	atom, ok := s.Resolve(ref)
	if !ok {
		return nil
	}
	var found []string
	switch {
	case v.IsMap() && atom.Map != nil:
		if atom.Map.ElementRelationship == smd.Atomic {
			found = append(found, path.String())
		}
		v.AsMap().Iterate(func(key string, item value.Value) bool {
			if f, known := atom.Map.FindField(key); known {
				found = append(found, wholes(append(path, fieldpath.PathElement{FieldName: &key}), s, f.Type, item)...)
			}
			return true
		})
	case v.IsList() && atom.List != nil:
		if atom.List.ElementRelationship == smd.Atomic {
			found = append(found, path.String())
		}
		list := v.AsList()
		for i := range list.Length() {
			found = append(found, wholes(append(path, fieldpath.PathElement{Index: &i}), s, atom.List.ElementType, list.At(i))...)
		}
	}
	return found
}
