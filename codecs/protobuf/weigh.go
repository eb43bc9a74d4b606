package protobuf

import (
	"encoding/binary"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
)

// entry is the memory of a map entry in addition to its value.
const entry = 64

// messageField is a field of a message.
type messageField struct {
	name    string // in JSON
	of      reflect.Type
	size    int64        // which it takes outside of the message, each time it comes
	inner   reflect.Type // a message; nil for none
	isMap   bool
	numbers bool // repeated ones, of which a packed field has several
	again   bool // its JSON codec processes all of it again
}

// weight is the memory of a message, how many bytes are read again, and how many may be.
type weight struct{ memory, reread, mostReread int64 }

var messages sync.Map // reflect.Type -> map[uint64]messageField

// add adds the memory of the messages and texts in data, decoded as type t.
func (w *weight) add(data []byte, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fields := fieldsOf(t)
	for len(data) > 0 && w.reread <= w.mostReread {
		tag, n := binary.Uvarint(data)
		field, rest, ok := next(data)
		if n <= 0 || !ok {
			return
		}
		data = rest
		f, known := fields[tag>>3]
		if !known {
			continue
		}
		if f.numbers && tag&7 == 2 {
			w.memory += f.size * varints(field)
			continue
		}
		w.memory += f.size
		if f.again {
			w.reread += int64(len(field))
		}
		switch {
		case tag&7 != 2 || f.inner == nil:
		case f.isMap:
			w.entry(field, f.inner)
		default:
			w.add(field, f.inner)
		}
	}
}

// varints counts the numbers in a packed field: each ends with a byte without the highest bit.
func varints(packed []byte) (n int64) {
	for _, b := range packed {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// entry is add for an entry of a map: a message of key and value.
func (w *weight) entry(data []byte, value reflect.Type) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		field, rest, ok := next(data)
		if n <= 0 || !ok {
			return
		}
		if data = rest; tag>>3 == 2 && tag&7 == 2 {
			w.add(field, value)
		}
	}
}

func fieldsOf(t reflect.Type) map[uint64]messageField {
	if known, ok := messages.Load(t); ok {
		return known.(map[uint64]messageField)
	}
	out := map[uint64]messageField{}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			f := t.Field(i)
			if number := tagged.Number(f); number != 0 {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				out[uint64(number)] = newMessageField(name, f.Type)
			}
		}
	}
	messages.Store(t, out)
	return out
}

func newMessageField(name string, t reflect.Type) messageField {
	a := messageField{name: name, of: t}
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			list := t.Kind() == reflect.Slice
			t = t.Elem()
			a.size += int64(t.Size())
			a.numbers = list && (t.Kind() == reflect.Bool || t.Kind() == reflect.Int32 || t.Kind() == reflect.Int64)
			continue
		case reflect.Map:
			a.isMap = true
			t = t.Elem()
			a.size += entry + int64(t.Size())
			continue
		case reflect.Struct:
			a.inner, a.again = t, reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
		}
		return a
	}
}
