package ownership

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rowlock/rowlock/server/schema/merging"
)

// checkKeys refuses a patch with list items that lack some of their key fields, which the library accepts if
// they have another one. The error is that of earlier versions of the library.
func checkKeys(s merging.Schema, tree map[string]any) error {
	k := keysCheck{}
	if k.value(s, tree, ""); len(k.wrong) == 0 {
		return nil
	}
	text := k.wrong[0]
	if len(k.wrong) > 1 {
		text = "errors:\n  " + strings.Join(k.wrong, "\n  ")
	}
	u := &unstructured.Unstructured{Object: tree}
	return fmt.Errorf("failed to create typed patch object (%v/%v; %v): %s", u.GetNamespace(), u.GetName(), u.GroupVersionKind(), text)
}

// keysCheck looks through one patch.
type keysCheck struct{ wrong []string }

func (k *keysCheck) value(s merging.Schema, v any, path string) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			switch value.(type) {
			case map[string]any, []any:
				if field, known := s.Field(name); known || field != (merging.Schema{}) {
					k.value(field, value, path+"."+name)
				}
			}
		}
	case []any:
		k.list(s, v, path)
	}
}

func (k *keysCheck) list(s merging.Schema, list []any, path string) {
	item, keys, _ := s.Items()
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		m, isMap := v.(map[string]any)
		if len(keys) > 0 {
			if !isMap {
				return // the library returns the error
			}
			var pairs []string
			for _, key := range slices.Sorted(slices.Values(keys)) {
				value, has := m[key]
				if !has {
					value, has = item.Default(key)
				}
				if has {
					pairs = append(pairs, key+"="+shownKey(value))
				}
			}
			for _, key := range keys { // in the order of the schema
				_, has := m[key]
				if !has {
					_, has = item.Default(key)
				}
				if !has {
					k.wrong = append(k.wrong, fmt.Sprintf("%s: element %d: associative list with keys has an element that omits key field %q (and doesn't have default value)", path, i, key))
					return // one error per list
				}
			}
			at = path + "[" + strings.Join(pairs, ",") + "]"
		}
		k.value(item, v, at)
	}
}

func shownKey(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprint(v)
}
