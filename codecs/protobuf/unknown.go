package protobuf

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/view"
)

// maxUnknown limits the fields that Unknown names.
const maxUnknown = 10

// Unknown names the first fields of an enveloped message that the type of obj does not have, or that the view
// lacks and that are not empty, by the path and the number of each ("spec.containers.99"), each once. Decode
// drops them, as Protobuf requires; programs that move objects without loss need them. data must be
// decodable.
func (c Codec) Unknown(data []byte, obj runtime.Object) []string {
	env, err := open(data)
	if err != nil {
		return nil
	}
	var found []string
	unknownIn(c.JSON.View(), env.raw, reflect.TypeOf(obj), nil, &found)
	return found
}

// unknownIn adds the fields of a message that t lacks to found.
func unknownIn(v *view.View, data []byte, t reflect.Type, path []string, found *[]string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fields := fieldsOf(t)
	if len(fields) == 0 || t == quantityType {
		return // a type with its own decoder, such as those of times
	}
	eachField(data, func(number uint64, field []byte, message, empty bool) {
		f, known := fields[number]
		if known && v != nil {
			known = !v.Lacks(t, f.name)
			if !known && empty && alwaysWritten(f.of.Kind()) {
				return
			}
		}
		switch {
		case !known:
			name := strings.Join(append(path, strconv.FormatUint(number, 10)), ".")
			if len(*found) < maxUnknown && !slices.Contains(*found, name) {
				*found = append(*found, name)
			}
		case message && f.inner != nil:
			below := append(path, f.name)
			if !f.isMap {
				unknownIn(v, field, f.inner, below, found)
				return
			}
			eachField(field, func(number uint64, value []byte, message, _ bool) {
				if number == 2 && message {
					unknownIn(v, value, f.inner, below, found)
				}
			})
		}
	})
}

// alwaysWritten reports whether generated types write a field of this kind even where it is empty.
func alwaysWritten(k reflect.Kind) bool {
	return k != reflect.Pointer && k != reflect.Slice && k != reflect.Map
}

// eachField calls fn for the fields of a message, up to an invalid one.
func eachField(data []byte, fn func(number uint64, field []byte, message, empty bool)) {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		field, rest, ok := next(data)
		if n <= 0 || !ok {
			return
		}
		content := field
		if tag&7 != 2 {
			content = bytes.TrimLeft(data[n:len(data)-len(rest)], "\x00")
		}
		data = rest
		fn(tag>>3, field, tag&7 == 2, len(content) == 0)
	}
}
