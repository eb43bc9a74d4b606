package transcode

import (
	"encoding/binary"
	"reflect"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/codecs/view"
)

// Without returns a message of type t without the fields that the view lacks: generated code writes fields
// that are not pointers even if they are empty. The message must be that of generated code.
func Without(v *view.View, message []byte, t reflect.Type) []byte {
	if !v.LacksAny(t) {
		return message
	}
	var out []byte
	fields, changed := numbering(v, t), false
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
		f := fields[tag>>3]
		if f.lacked {
			changed = true
			continue
		}
		out = append(out, head...)
		if tag&7 == 2 {
			if f.of != nil {
				kept := inside(v, content, f.of)
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

// numberings are the fields of messages by number, kept like plans.
var numberings sync.Map // *view.View -> *sync.Map of reflect.Type -> map[uint64]numberedField

type numberedField struct {
	of     reflect.Type
	lacked bool // by the view
}

// numbering returns the fields of a message by number.
func numbering(v *view.View, t reflect.Type) map[uint64]numberedField {
	of, ok := numberings.Load(v)
	if !ok {
		of, _ = numberings.LoadOrStore(v, new(sync.Map))
	}
	known := of.(*sync.Map)
	if n, ok := known.Load(t); ok {
		return n.(map[uint64]numberedField)
	}
	made := make(map[uint64]numberedField, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		number, tag := tagOf(f)
		if tag == nil {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		made[number] = numberedField{f.Type, name != "" && v.Lacks(t, name)}
	}
	known.Store(t, made)
	return made
}
