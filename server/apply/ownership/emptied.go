package ownership

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema/merging"
)

// emptied are the objects and lists of which an apply leaves nothing, because its manager applies no field in them any
// more. The library leaves them empty; before, it left null, which is absent from Go types.
type emptied struct {
	resource *kinds.Resource
	schema   merging.Schema
	live     kinds.Object
}

// null makes null of them in the tree that the library has merged. Whatever is above one is not shared: the library has
// made it anew without what went.
func (e *emptied) null(merged *unstructured.Unstructured) error {
	if merged.GroupVersionKind() != e.resource.GVK() || !holdsEmpty(merged.Object) {
		return nil
	}
	live, isTree := e.live.(*unstructured.Unstructured)
	if isTree {
		nullEmptied(e.schema, live.Object, merged.Object)
		return nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(e.live)
	if err != nil {
		return fmt.Errorf("comparing with the live object: %w", err)
	}
	nullEmptied(e.schema, tree, merged.Object)
	return nil
}

// holdsEmpty says whether there is an empty object or list in a value.
func holdsEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if holdsEmpty(value) {
				return true
			}
		}
		return len(v) == 0
	case []any:
		for _, value := range v {
			if holdsEmpty(value) {
				return true
			}
		}
		return len(v) == 0
	}
	return false
}

// nullEmptied goes through what is merged field by field.
func nullEmptied(s merging.Schema, live, merged map[string]any) {
	if s.WholeMap() {
		return
	}
	for name, value := range merged {
		switch value := value.(type) {
		case map[string]any:
			was, _ := live[name].(map[string]any)
			if len(was) == 0 || !holdsEmpty(value) {
				continue
			}
			if field, _ := s.Field(name); len(value) > 0 {
				nullEmptied(field, was, value)
			} else if !field.WholeMap() {
				merged[name] = nil
			}
		case []any:
			was, _ := live[name].([]any)
			if len(was) == 0 || !holdsEmpty(value) {
				continue
			}
			if field, _ := s.Field(name); len(value) > 0 {
				nullInItems(field, was, value)
			} else if !field.WholeList() {
				merged[name] = nil
			}
		}
	}
}

// nullInItems goes through the items of a list that are told apart by their fields.
func nullInItems(s merging.Schema, live, merged []any) {
	item, keys, _ := s.Items()
	if len(keys) == 0 {
		return
	}
	told := func(m map[string]any) string {
		values := make([]any, len(keys))
		for i, key := range keys {
			var has bool
			if values[i], has = m[key]; !has {
				values[i], _ = item.Default(key)
			}
		}
		return fmt.Sprintf("%q", values)
	}
	known := make(map[string]map[string]any, len(live))
	for _, v := range live {
		if m, ok := v.(map[string]any); ok {
			known[told(m)] = m
		}
	}
	for _, v := range merged {
		if m, ok := v.(map[string]any); ok && holdsEmpty(m) {
			nullEmptied(item, known[told(m)], m)
		}
	}
}
