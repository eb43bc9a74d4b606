package ownership

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/schema/merging"
)

// Overlay merges fields into an object like an apply, but without owners: this is how mutating policies
// change objects. It does not change its arguments. It refuses replacing a list, a map or a struct as a
// whole, and merges that would take the library too long.
func Overlay(s *schema.Schemas, live runtime.Object, fields map[string]any) (map[string]any, error) {
	if err := checkFields(fields); err != nil {
		return nil, err
	}
	if err := checkFields(live); err != nil {
		return nil, err
	}
	patch, err := merging.NewPatch(overlaid(s, live), &unstructured.Unstructured{Object: fields})
	if err != nil {
		return nil, err
	}
	if whole := wholes(nil, patch.Schema, fields); len(whole) > 0 {
		slices.Sort(whole)
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %v", strings.Join(whole, ", "))
	}
	if live.GetObjectKind().GroupVersionKind().Kind == "" { // as some bodies of subresources
		live = live.DeepCopyObject()
		live.GetObjectKind().SetGroupVersionKind((&unstructured.Unstructured{Object: fields}).GroupVersionKind())
	}
	return patch.Into(live)
}

// overlaid gives objects the merge type of live.
func overlaid(s *schema.Schemas, live runtime.Object) merging.Converter {
	_, tree := live.(*unstructured.Unstructured)
	r := s.Catalogue().LookupKind(live.GetObjectKind().GroupVersionKind())
	if tree || r != nil && r.HasGoType() {
		return s.Converter()
	}
	return s.ConverterAs(reflect.TypeOf(live).Elem()) // the body of a subresource
}

// wholes returns the paths of values that a merge replaces as a whole: the author of a part may not know that the
// rest would be removed.
func wholes(path fieldpath.Path, s merging.Schema, value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		if s.WholeMap() {
			found = append(found, path.String())
		}
		for key, item := range value {
			if field, known := s.Field(key); known {
				found = append(found, wholes(append(path, fieldpath.PathElement{FieldName: &key}), field, item)...)
			}
		}
	case []any:
		if s.WholeList() {
			found = append(found, path.String())
		}
		items, _, _ := s.Items()
		for i, item := range value {
			found = append(found, wholes(append(path, fieldpath.PathElement{Index: &i}), items, item)...)
		}
	}
	return found
}
