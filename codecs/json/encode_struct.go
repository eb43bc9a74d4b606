package json

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldEncoder writes a field of a struct.
type fieldEncoder struct {
	name   string // `"name":`
	offset uintptr
	empty  func(unsafe.Pointer) bool // nil: never left out
	value  encoder
}

func (pl *plans) newStructEncoder(t reflect.Type) encoder {
	if custom(t) {
		return stdEncoder(t)
	}
	fields, ok := pl.structFields(t, 0)
	if !ok {
		return stdEncoder(t)
	}
	return func(dst []byte, p unsafe.Pointer) ([]byte, error) {
		dst = append(dst, '{')
		first := true
		for i := range fields {
			f := &fields[i]
			at := unsafe.Add(p, f.offset)
			if f.empty != nil && f.empty(at) {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dst, f.name...)
			var err error
			if dst, err = f.value(dst, at); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

// structFields lists the fields of a struct, those of embedded structs in their place. It fails for types
// that only encoding/json can sort.
func (pl *plans) structFields(t reflect.Type, base uintptr) ([]fieldEncoder, bool) {
	var out []fieldEncoder
	seen := map[string]bool{}
	for f := range fieldsOf(t) {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-":
			continue
		case f.Anonymous && name == "":
			if f.Type.Kind() != reflect.Struct || custom(f.Type) {
				return nil, false
			}
			inner, ok := pl.structFields(f.Type, base+f.Offset)
			if !ok {
				return nil, false
			}
			out = append(out, inner...)
			continue
		case !f.IsExported():
			continue
		case strings.Contains(options, "string") || !plain(name):
			return nil, false
		}
		name = cmp.Or(name, f.Name)
		e := fieldEncoder{name: `"` + name + `":`, offset: base + f.Offset, value: pl.newEncoder(f.Type)}
		left := strings.Split(options, ",")
		if slices.Contains(left, "omitempty") {
			e.empty = emptyTest(f.Type)
		}
		if slices.Contains(left, "omitzero") {
			zero, ok := zeroTest(f.Type)
			if !ok || e.empty != nil {
				return nil, false
			}
			e.empty = zero
		}
		if pl.view.Lacks(t, name) {
			e.empty = always
		} else if pl.view.Nulls(t, name) {
			e.empty = nil
		}
		out = append(out, e)
	}
	for _, f := range out {
		if seen[f.name] {
			return nil, false // which one wins depends on depth and tags
		}
		seen[f.name] = true
	}
	return out, true
}

func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// plain reports whether a name needs no escaping and cannot be refused as a tag.
func plain(name string) bool {
	for _, c := range name {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '$') {
			return false
		}
	}
	return true
}

// always leaves a field out.
func always(unsafe.Pointer) bool { return true }

// zeroTest returns the test of omitzero for a type. ok is false for types with an IsZero method, except times.
func zeroTest(t reflect.Type) (zero func(unsafe.Pointer) bool, ok bool) {
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return func(p unsafe.Pointer) bool { return (*metav1.Time)(p).IsZero() }, true
	case reflect.TypeFor[metav1.MicroTime]():
		return func(p unsafe.Pointer) bool { return (*metav1.MicroTime)(p).IsZero() }, true
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ IsZero() bool }]()) {
		return nil, false
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }, true
}

// emptyTest returns the test of omitempty for a type; nil if no value of it is empty.
func emptyTest(t reflect.Type) func(unsafe.Pointer) bool {
	switch t.Kind() {
	case reflect.String:
		return func(p unsafe.Pointer) bool { return len(*(*string)(p)) == 0 }
	case reflect.Bool:
		return func(p unsafe.Pointer) bool { return !*(*bool)(p) }
	case reflect.Slice:
		return func(p unsafe.Pointer) bool { return (*sliceHeader)(p).len == 0 }
	case reflect.Pointer:
		return func(p unsafe.Pointer) bool { return *(*unsafe.Pointer)(p) == nil }
	case reflect.Int32:
		return func(p unsafe.Pointer) bool { return *(*int32)(p) == 0 }
	case reflect.Int64:
		return func(p unsafe.Pointer) bool { return *(*int64)(p) == 0 }
	case reflect.Struct:
		return nil
	case reflect.Map:
		return func(p unsafe.Pointer) bool {
			return *(*unsafe.Pointer)(p) == nil || reflect.NewAt(t, p).Elem().Len() == 0
		}
	case reflect.Array:
		return func(p unsafe.Pointer) bool { return t.Len() == 0 }
	}
	return func(p unsafe.Pointer) bool { return reflect.NewAt(t, p).Elem().IsZero() }
}
