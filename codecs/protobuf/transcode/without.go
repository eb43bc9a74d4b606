package transcode

import (
	"encoding/binary"
	"reflect"
	"strings"

	"github.com/rowlock/rowlock/codecs/view"
)

// Without is a message of type t without the fields that the view lacks: generated code writes fields that are no pointers
// even where they are empty. The message must be one that generated code has written.
func Without(v *view.View, message []byte, t reflect.Type) []byte {
	if !v.LacksAny(t) {
		return message
	}
	var out []byte
	changed := false
	for rest := message; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		head, content, next := rest[:max(n, 0)], []byte(nil), []byte(nil)
		switch size, m := binary.Uvarint(rest[max(n, 0):]); {
		case n <= 0 || m <= 0:
			return message
		case tag&7 == 0:
			content, next = rest[n:n+m], rest[n+m:]
		case tag&7 != 2 || size > uint64(len(rest)-n-m):
			return message // other wire types do not occur in these types
		default:
			content, next = rest[n+m:n+m+int(size)], rest[n+m+int(size):]
		}
		rest = next
		of, lacked := fieldNumbered(v, t, tag>>3)
		if lacked {
			changed = true
			continue
		}
		out = append(out, head...)
		if tag&7 == 2 {
			if of != nil {
				kept := inside(v, content, of)
				changed = changed || len(kept) != len(content)
				content = kept
			}
			out = binary.AppendUvarint(out, uint64(len(content)))
		}
		out = append(out, content...)
	}
	if !changed {
		return message
	}
	return out
}

// inside is Without for the content of a field of a type.
func inside(v *view.View, content []byte, t reflect.Type) []byte {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Struct:
		return Without(v, content, t)
	case t.Kind() == reflect.Map && v.LacksAny(t.Elem()):
		entry := reflect.StructOf([]reflect.StructField{
			{Name: "Key", Type: t.Key(), Tag: `protobuf:"bytes,1"`}, {Name: "Value", Type: t.Elem(), Tag: `json:"value" protobuf:"bytes,2"`},
		})
		return Without(v, content, entry)
	}
	return content
}

// fieldNumbered is the type of a field of a message, nil for one that is not known, and whether the view lacks it.
func fieldNumbered(v *view.View, t reflect.Type, number uint64) (of reflect.Type, lacked bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if n, tag := tagOf(f); tag == nil || n != number {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return f.Type, name != "" && v.Lacks(t, name)
	}
	return nil, false
}
