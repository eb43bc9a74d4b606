package apply

import (
	"bytes"
	"maps"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/quantities"
	"github.com/rowlock/rowlock/server/apply/merge"
)

// quick applies a merge patch, strategic or not, to a copy of current, converting
// only the parts that the patch names. It reports false for whatever is not plain: an
// error, an unknown or duplicate field, a directive. Then the long way finds out what
// to say.
func (p *Patch) quick(current runtime.Object) (runtime.Object, bool) {
	if _, custom := current.(*unstructured.Unstructured); custom || keepsSpelling(reflect.TypeOf(current).Elem()) {
		return nil, false
	}
	patch, ok := decodeTree(p.Body)
	if !ok {
		return nil, false
	}
	merge := merger(mergeStrategic)
	if p.Type == codecs.PatchMerge {
		merge = mergePlain
		if !plainNumbers(patch) {
			return nil, false
		}
	}
	patched := current.DeepCopyObject()
	if !merge.patchStruct(reflect.ValueOf(patched).Elem(), patch) {
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

// merger merges the part of a patch that is for the fields of one struct, given as
// trees. sample is a struct of that type.
type merger func(tree, part map[string]any, sample any) (map[string]any, error)

func mergeStrategic(tree, part map[string]any, sample any) (map[string]any, error) {
	return merge.Strategic(tree, part, reflect.TypeOf(sample).Elem())
}

// mergePlain is RFC 7386.
func mergePlain(tree, part map[string]any, sample any) (map[string]any, error) {
	if tree == nil {
		tree = map[string]any{}
	}
	for name, value := range part {
		switch value := value.(type) {
		case nil:
			delete(tree, name)
		case map[string]any:
			inner, _ := tree[name].(map[string]any)
			tree[name], _ = mergePlain(inner, value, nil)
		default:
			tree[name] = value
		}
	}
	return tree, nil
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
// scalars go through the merge library, those of one struct together.
func (m merger) patchStruct(v reflect.Value, patch map[string]any) bool {
	fields := patchFieldsOf(v.Type())
	part := map[string]any{}  // of the patch, for the library
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
func (m merger) patchPart(v reflect.Value, part map[string]any, named map[string]int, merge bool) bool {
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
		if part, err = m(tree, part, scratch.Interface()); err != nil {
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
	index  map[string]int // direct JSON fields; inlined ones are left to the long way
	tagged []bool         // fields with a patch strategy of their own
	opaque bool           // the type reads its own JSON
}

// patchFieldsKnown is a cache of a pure function of the type.
var patchFieldsKnown sync.Map // reflect.Type -> *patchFields

func patchFieldsOf(t reflect.Type) *patchFields {
	if known, ok := patchFieldsKnown.Load(t); ok {
		return known.(*patchFields)
	}
	out := &patchFields{index: map[string]int{}, tagged: make([]bool, t.NumField())}
	_, out.opaque = reflect.PointerTo(t).MethodByName("UnmarshalJSON")
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && f.IsExported() {
			out.index[name] = i
			out.tagged[i] = f.Tag.Get("patchStrategy") != ""
		}
	}
	patchFieldsKnown.Store(t, out)
	return out
}

// decodeTree reads a JSON object whose integers stay integers. It reports false for
// anything but a clean document without duplicates.
func decodeTree(text []byte) (map[string]any, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	if dec.PeekKind() != '{' {
		return nil, false
	}
	tree, ok := decodeNode(dec)
	if !ok || dec.PeekKind() != 0 || dec.InputOffset() < int64(len(bytes.TrimRight(text, " \t\r\n"))) {
		return nil, false
	}
	out, ok := tree.(map[string]any)
	return out, ok
}

func decodeNode(dec *jsontext.Decoder) (any, bool) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, false
	}
	switch tok.Kind() {
	case '{':
		out := map[string]any{}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, false
			}
			key := name.String()
			value, ok := decodeNode(dec)
			if !ok {
				return nil, false
			}
			out[key] = value
		}
		_, err := dec.ReadToken()
		return out, err == nil
	case '[':
		out := []any{}
		for dec.PeekKind() != ']' {
			value, ok := decodeNode(dec)
			if !ok {
				return nil, false
			}
			out = append(out, value)
		}
		_, err := dec.ReadToken()
		return out, err == nil
	case '"':
		return tok.String(), true
	case '0':
		text := tok.String()
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case 't', 'f':
		return tok.Bool(), true
	}
	return nil, tok.Kind() == 'n'
}
