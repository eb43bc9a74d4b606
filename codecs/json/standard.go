package json

import (
	"bytes"
	"crypto/rand"
	stdjson "encoding/json"
	"reflect"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// appendStandard is encoding/json, but for extensions: encoding/json would write these without
// white space and with escapes for HTML, and they keep their spelling.
func (c Codec) appendStandard(dst []byte, v any) ([]byte, error) {
	obj, ok := v.(runtime.Object)
	if !ok || !holdsExtensions(reflect.TypeOf(v)) {
		data, err := stdjson.Marshal(v)
		if err == nil && v != nil {
			data = c.plans().withNulls(data, reflect.TypeOf(v))
		}
		return append(dst, data...), err
	}
	// A copy of the object has an unguessable text in place of each extension that would be respelled.
	obj = obj.DeepCopyObject()
	var spelled [][]byte
	eachExtension(reflect.ValueOf(obj), func(e *runtime.RawExtension) {
		if !compact(e.Raw) && oneLine(e.Raw) {
			spelled = append(spelled, e.Raw)
			e.Raw = placeholder(len(spelled) - 1)
		}
	})
	data, err := stdjson.Marshal(obj)
	if err != nil {
		return dst, err
	}
	data = c.plans().withNulls(data, reflect.TypeOf(v))
	for i, raw := range spelled {
		before, after, _ := bytes.Cut(data, placeholder(i))
		dst = append(append(dst, before...), raw...)
		data = after
	}
	return append(dst, data...), nil
}

var placeholderBase = rand.Text()

func placeholder(i int) []byte { return strconv.AppendQuote(nil, placeholderBase+strconv.Itoa(i)) }

var extensionType = reflect.TypeFor[runtime.RawExtension]()

var extensionHolders sync.Map // reflect.Type -> bool

// holdsExtensions reports whether eachExtension can find something in values of a type.
func holdsExtensions(t reflect.Type) bool {
	if known, ok := extensionHolders.Load(t); ok {
		return known.(bool)
	}
	holds := searchExtensions(t, map[reflect.Type]bool{})
	extensionHolders.Store(t, holds)
	return holds
}

func searchExtensions(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == extensionType {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch {
	case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice:
		return searchExtensions(t.Elem(), seen)
	case t.Kind() == reflect.Struct && !custom(t):
		for i := range t.NumField() {
			if t.Field(i).IsExported() && searchExtensions(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// eachExtension calls f with the extensions in a value, in their order. Those in maps and
// interfaces are left to encoding/json by the fast path too.
func eachExtension(v reflect.Value, f func(*runtime.RawExtension)) {
	switch t := v.Type(); {
	case t == extensionType:
		f(v.Addr().Interface().(*runtime.RawExtension))
	case t.Kind() == reflect.Pointer && !v.IsNil():
		eachExtension(v.Elem(), f)
	case t.Kind() == reflect.Slice && holdsExtensions(t):
		for i := range v.Len() {
			eachExtension(v.Index(i), f)
		}
	case t.Kind() == reflect.Struct && !custom(t) && holdsExtensions(t):
		for i := range v.NumField() {
			if t.Field(i).IsExported() {
				eachExtension(v.Field(i), f)
			}
		}
	}
}
