package apply

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/view"
)

// patchFields describes a struct type for merging.
type patchFields struct {
	lacked sync.Map       // *view.View -> []bool
	index  map[string]int // direct JSON fields; inlined ones are left to the tree
	tagged []bool         // fields with a merge strategy
	merged []bool         // the lists among them whose items are merged
	shown  []bool         // fields whose value is in the JSON even if it is null
	keys   []string       // the string field that identifies such items; "" for others
	opaque bool           // the type reads its own JSON
}

// missingIn returns the fields that a view lacks, by their index; nil: none.
func (p *patchFields) missingIn(v *view.View, t reflect.Type) []bool {
	if v == nil {
		return nil
	}
	if known, ok := p.lacked.Load(v); ok {
		return known.([]bool)
	}
	var lacked []bool
	for name, i := range p.index {
		if v.Lacks(t, name) {
			lacked = append(lacked, make([]bool, max(0, i+1-len(lacked)))...)
			lacked[i] = true
		}
	}
	p.lacked.Store(v, lacked)
	return lacked
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
			if key := f.Tag.Get("patchMergeKey"); out.merged[i] && keyedBy(f.Type.Elem(), key) {
				out.keys[i] = key
			}
		}
	}
	patchFieldsKnown.Store(t, out)
	return out
}

// keyedBy reports whether a string field identifies the items of a type.
func keyedBy(item reflect.Type, key string) bool {
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

// keepsSpelling reports types with a field that holds raw JSON. A patch encodes the whole object again, so
// that its spelling may change.
func keepsSpelling(object reflect.Type) bool {
	for i := range object.NumField() {
		if object.Field(i).Type == reflect.TypeFor[runtime.RawExtension]() {
			return true
		}
	}
	return false
}
