package cbor

import (
	"reflect"
	"slices"

	"github.com/rowlock/rowlock/codecs/view"
)

const null = 0xf6

// appendNulls appends the first item of data, which the encoder made of a value of type t, and in each map of a struct null
// for the empty fields that the view wants to be written. It returns the bytes behind the item.
func appendNulls(dst, data []byte, t reflect.Type, v *view.View) (out, rest []byte) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	major := data[0] & 0xe0
	list, object := major == array && t.Kind() == reflect.Slice, major == object && (t.Kind() == reflect.Map || t.Kind() == reflect.Struct)
	if !v.NullsAny(t) || !list && !object {
		n := span(data, 1)
		return append(dst, data[:n]...), data[n:]
	}
	n, head := itemHead(data)
	switch {
	case list:
		dst, data = append(dst, data[:head]...), data[head:]
		for range n {
			dst, data = appendNulls(dst, data, t.Elem(), v)
		}
		return dst, data
	case t.Kind() == reflect.Map:
		dst, data = append(dst, data[:head]...), data[head:]
		for range n {
			key := span(data, 1)
			dst, data = appendNulls(append(dst, data[:key]...), data[key:], t.Elem(), v)
		}
		return dst, data
	}
	return appendStruct(dst, data[head:], n, v.Fields(t), v)
}

// appendStruct is appendNulls for the members of a struct, behind the head.
func appendStruct(dst, data []byte, members uint64, fields []view.Field, v *view.View) (out, rest []byte) {
	var missing []string
	for _, f := range fields {
		if f.Null {
			missing = append(missing, f.Name)
		}
	}
	var body []byte
	for range members {
		key := span(data, 1)
		_, head := itemHead(data)
		name := string(data[head:key])
		body, data = append(body, data[:key]...), data[key:]
		i := slices.IndexFunc(fields, func(f view.Field) bool { return f.Name == name })
		if i < 0 {
			n := span(data, 1)
			body, data = append(body, data[:n]...), data[n:]
			continue
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
		body, data = appendNulls(body, data, fields[i].Type, v)
	}
	dst = append(appendHead(dst, object, members+uint64(len(missing))), body...)
	for _, name := range missing {
		dst = append(appendString(dst, name), null)
	}
	return dst, data
}
