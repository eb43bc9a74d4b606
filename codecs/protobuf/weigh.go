package protobuf

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// entry is what a map takes for an entry beside its value.
const entry = 64

// apart is what a field of a message takes outside of the message, each time it comes.
type apart struct {
	size  int64
	inner reflect.Type // a message; nil for none
	isMap bool
}

var messages sync.Map // reflect.Type -> map[uint64]apart

// weigh adds up what the messages and texts in data take as a value of type t.
func weigh(data []byte, t reflect.Type) (sum int64) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fields := fieldsApart(t)
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		field, rest, ok := next(data)
		if n <= 0 || !ok {
			return sum
		}
		data = rest
		f, known := fields[tag>>3]
		if !known {
			continue
		}
		sum += f.size
		switch {
		case tag&7 != 2 || f.inner == nil:
		case f.isMap:
			sum += weighEntry(field, f.inner)
		default:
			sum += weigh(field, f.inner)
		}
	}
	return sum
}

// weighEntry is weigh for an entry of a map: a message of key and value.
func weighEntry(data []byte, value reflect.Type) (sum int64) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		field, rest, ok := next(data)
		if n <= 0 || !ok {
			return sum
		}
		if data = rest; tag>>3 == 2 && tag&7 == 2 {
			sum += weigh(field, value)
		}
	}
	return sum
}

func fieldsApart(t reflect.Type) map[uint64]apart {
	if known, ok := messages.Load(t); ok {
		return known.(map[uint64]apart)
	}
	out := map[uint64]apart{}
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			f := t.Field(i)
			parts := strings.SplitN(f.Tag.Get("protobuf"), ",", 3)
			if len(parts) < 2 {
				continue
			}
			if number, err := strconv.ParseUint(parts[1], 10, 32); err == nil {
				out[number] = apartOf(f.Type)
			}
		}
	}
	messages.Store(t, out)
	return out
}

func apartOf(t reflect.Type) (a apart) {
	for {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice:
			t = t.Elem()
			a.size += int64(t.Size())
			continue
		case reflect.Map:
			a.isMap = true
			t = t.Elem()
			a.size += entry + int64(t.Size())
			continue
		case reflect.Struct:
			a.inner = t
		}
		return a
	}
}
