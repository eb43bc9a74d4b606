package history

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// maxPath limits the characters of a path.
const maxPath = 512

// pathText words a path: spec.containers[name="web"].image, metadata.labels["a.b/c"],
// spec.args[2].
func pathText(path fieldpath.Path) string {
	var b strings.Builder
	for _, e := range path {
		if b.Len() > maxPath {
			break
		}
		switch {
		case e.FieldName != nil && !plain(*e.FieldName):
			fmt.Fprintf(&b, "[%q]", head(*e.FieldName))
		case e.FieldName != nil:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(head(*e.FieldName))
		case e.Key != nil:
			parts := make([]string, len(*e.Key))
			for i, f := range *e.Key {
				parts[i] = f.Name + "=" + valueText(f.Value)
			}
			fmt.Fprintf(&b, "[%s]", strings.Join(parts, ","))
		case e.Value != nil:
			fmt.Fprintf(&b, "[=%s]", valueText(*e.Value))
		case e.Index != nil:
			b.WriteString("[" + strconv.Itoa(*e.Index) + "]")
		}
	}
	if b.Len() > maxPath {
		return strings.ToValidUTF8(b.String()[:maxPath], "") + "..."
	}
	return b.String()
}

// head truncates a name to the part that a path can show: a thousand fields below one long name would
// each take the time to quote all of it.
func head(name string) string { return name[:min(len(name), maxPath+1)] }

// valueText formats the key value of a list item, up to the length that a path can hold.
func valueText(v value.Value) string {
	if v.IsString() {
		return strconv.Quote(head(v.AsString()))
	}
	return value.ToString(v)
}

// plain reports whether a name needs no quotes in a path.
func plain(name string) bool {
	name = head(name)
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '$') {
			return false
		}
	}
	return name != ""
}

func fieldElement(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }

func indexElement(i int) fieldpath.PathElement { return fieldpath.PathElement{Index: &i} }

// keyElement returns the path element of an item with key fields; ok is false for one that has none of them, or if
// one is not a scalar.
func keyElement(item any, keys []string) (e fieldpath.PathElement, ok bool) {
	fields, isMap := item.(map[string]any)
	if !isMap {
		return e, false
	}
	var list value.FieldList
	for _, key := range keys {
		switch v := fields[key].(type) {
		case nil:
		case string, bool, int64, float64:
			list = append(list, value.Field{Name: key, Value: value.NewValueInterface(v)})
		default:
			return e, false
		}
	}
	list.Sort()
	return fieldpath.PathElement{Key: &list}, len(list) > 0
}

// valueElement returns the path element of an item of a set; ok is false for one that is not a scalar.
func valueElement(item any) (e fieldpath.PathElement, ok bool) {
	switch item.(type) {
	case string, bool, int64, float64:
		return fieldpath.PathElement{Value: new(value.NewValueInterface(item))}, true
	}
	return e, false
}
