package json

import (
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// These functions read single values, for a caller that walks an object itself: a patcher.

// Plain reports whether a value of the type is the same if it is decoded from its text or from the plain
// values (maps, lists, strings, integers) of this text. Types that keep their text, or decode it themselves,
// are not plain.
func (c Codec) Plain(t reflect.Type) bool {
	pl := c.plans()
	if known, ok := pl.plain.Load(t); ok {
		return known.(bool)
	}
	is := pl.isPlain(t, map[reflect.Type]bool{})
	pl.plain.Store(t, is)
	return is
}

// isPlain looks through a type; open are those it is inside of.
func (pl *plans) isPlain(t reflect.Type, open map[reflect.Type]bool) bool {
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
		return pl.isPlain(t.Elem(), open)
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8 && !customDecoding(t.Elem()) || pl.isPlain(t.Elem(), open)
	case reflect.Map:
		return t.Key().Kind() == reflect.String && !customDecoding(t.Key()) && pl.isPlain(t.Elem(), open)
	case reflect.Struct:
		return pl.isPlainStruct(t, open)
	}
	return false
}

func (pl *plans) isPlainStruct(t reflect.Type, open map[reflect.Type]bool) bool {
	if open[t] {
		return true // as far as it depends on the rest
	}
	open[t] = true
	fields, ok := pl.decodedFields(t, 0)
	if !ok {
		return false
	}
	for i := range fields {
		if !pl.isPlain(fields[i].t, open) {
			return false
		}
	}
	return true
}

// ReadPlain reads text, one value without white space around it, into v, which is empty and
// addressable and of a type that is Plain. It fails where Codec.DecodeClean does; v is half
// filled then. Strings of v are parts of text, which must not change any more.
func (c Codec) ReadPlain(text []byte, v reflect.Value) bool {
	s := newSource(unsafe.String(unsafe.SliceData(text), len(text)))
	return c.plans().valueDecoder(v.Type())(s, v.Addr().UnsafePointer()) && s.at == len(text)
}

func (pl *plans) valueDecoder(t reflect.Type) decoder {
	if d, ok := pl.values.Load(t); ok {
		return d.(decoder)
	}
	d := pl.newDecoder(t)
	pl.values.Store(t, d)
	return d
}
