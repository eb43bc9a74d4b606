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

// null sets them to null in the tree that the library has merged. Their parents are not shared: the library
// has made them anew without the removed fields.
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

// holdsEmpty reports whether there is an empty object or list in a value. It visits all of the value, so that its cost does
// not depend on the order of a map.
func holdsEmpty(v any) bool {
	found := false
	switch v := v.(type) {
	case map[string]any:
		found = len(v) == 0
		for _, value := range v {
			found = holdsEmpty(value) || found
		}
	case []any:
		found = len(v) == 0
		for _, value := range v {
			found = holdsEmpty(value) || found
		}
	}
	return found
}

// nullEmptied makes null of the fields of a merged object that an apply has emptied.
func nullEmptied(s merging.Schema, live, merged map[string]any) {
	if s.WholeMap() {
		return
	}
	for name, value := range merged {
		switch value := value.(type) {
		case map[string]any:
			was, _ := live[name].(map[string]any)
			if len(was) == 0 {
				continue
			}
			if field, _ := s.Field(name); len(value) > 0 {
				nullEmptied(field, was, value)
			} else if !field.WholeMap() {
				merged[name] = nil
			}
		case []any:
			was, _ := live[name].([]any)
			if len(was) == 0 {
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

// nullInItems does so in the items of a list whose keys identify them.
func nullInItems(s merging.Schema, live, merged []any) {
	item, keys, _ := s.Items()
	if len(keys) == 0 {
		return
	}
	keyText := func(m map[string]any) string {
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
			known[keyText(m)] = m
		}
	}
	for _, v := range merged {
		if m, ok := v.(map[string]any); ok && holdsEmpty(m) {
			nullEmptied(item, known[keyText(m)], m)
		}
	}
}
