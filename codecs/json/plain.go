package json

import (
	"reflect"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Single values are read where a caller walks an object itself: a patcher, which knows what of it
// is to be set.

// Plain says that a value of the type is the same whether it is read from its text or from the
// plain values (maps, lists, strings, whole numbers) that this text stands for. Types are not that
// keep their text, or read it by themselves.
func Plain(t reflect.Type) bool {
	if known, ok := plainTypes.Load(t); ok {
		return known.(bool)
	}
	is := isPlain(t, map[reflect.Type]bool{})
	plainTypes.Store(t, is)
	return is
}

var plainTypes sync.Map // reflect.Type -> bool; a pure function of the type

// isPlain looks through a type; open are those it is inside of.
func isPlain(t reflect.Type, open map[reflect.Type]bool) bool {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return true
	}
	if t.Kind() != reflect.Pointer && customDecoding(t) {
		return false
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		return true
	case reflect.Pointer:
		return isPlain(t.Elem(), open)
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8 && !customDecoding(t.Elem()) || isPlain(t.Elem(), open)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && !customDecoding(t.Key()) && isPlain(t.Elem(), open)
	case reflect.Struct:
		return isPlainStruct(t, open)
	}
	return false
}

func isPlainStruct(t reflect.Type, open map[reflect.Type]bool) bool {
	if open[t] {
		return true // as far as it depends on the rest
	}
	open[t] = true
	fields, ok := decodedFields(t, 0)
	if !ok {
		return false
	}
	for i := range fields {
		if !isPlain(fields[i].t, open) {
			return false
		}
	}
	return true
}

// ReadPlain reads text, one value without white space around it, into v, which is empty and
// addressable and of a type that is Plain. It fails where Codec.DecodeClean does; v is half
// filled then. Strings of v are parts of text, which must not change any more.
func ReadPlain(text []byte, v reflect.Value) bool {
	s := newSource(unsafe.String(unsafe.SliceData(text), len(text)))
	return valueDecoder(v.Type())(s, v.Addr().UnsafePointer()) && s.at == len(text)
}

var valueDecoders sync.Map // reflect.Type -> decoder

func valueDecoder(t reflect.Type) decoder {
	if d, ok := valueDecoders.Load(t); ok {
		return d.(decoder)
	}
	d := newDecoder(t)
	valueDecoders.Store(t, d)
	return d
}
