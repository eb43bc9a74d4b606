package fieldset

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// value is a Go value, and whether it is present in the JSON of its object. The value of an absent one is not
// read.
type value struct {
	reflect.Value
	presence
}

type presence uint8

const (
	absent presence = iota
	null
	present
)

// valueOf dereferences pointers. omitEmpty is that of the field that contains the value.
func valueOf(n *node, v reflect.Value, omitEmpty bool) value {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			if omitEmpty {
				return value{v, absent}
			}
			return value{v, null}
		}
		// A pointer to an empty value is not omitted.
		v, omitEmpty = v.Elem(), false
	}
	switch v.Kind() {
	case reflect.Map, reflect.Slice:
		if omitEmpty && v.Len() == 0 {
			return value{v, absent}
		}
		if v.IsNil() {
			return value{v, null}
		}
	case reflect.Struct:
		if n.codec != codecNone && encodesNull(n, v) {
			return value{v, null}
		}
	default:
		if omitEmpty && v.IsZero() {
			return value{v, absent}
		}
	}
	return value{v, present}
}

// field returns the value of a field of a struct.
func (v value) field(f *nodeField) value {
	if v.presence != present {
		return value{}
	}
	out := valueOf(f.node, fieldAt(v.Value, f.index), f.omitEmpty)
	if f.omitZero && out.presence == null {
		out.presence = absent
	}
	return out
}

// item returns the value of an item of a list.
func (v value) item(n *node, i int) value { return valueOf(n.elem, v.Index(i), false) }

// entry returns the value of an entry of a map.
func (v value) entry(n *node, key reflect.Value) value {
	if v.presence != present {
		return value{}
	}
	e := v.MapIndex(key)
	if !e.IsValid() {
		return value{}
	}
	return valueOf(n.elem, e, false)
}

func fieldAt(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	return v.FieldByIndex(index)
}

// encodesNull reports whether a value of a type with its own JSON encoding is null there.
func encodesNull(n *node, v reflect.Value) bool {
	switch n.codec {
	case codecTime:
		return pointerTo[metav1.Time](v).IsZero()
	case codecMicroTime:
		return pointerTo[metav1.MicroTime](v).IsZero()
	case codecRaw:
		raw, ok := rawBytes(v)
		return ok && len(raw) == 0
	}
	return false
}

// pointerTo returns a pointer to a value, or to a copy of one that is not addressable.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	t := v.Interface().(T)
	return &t
}

// rawBytes returns the JSON of a RawExtension that holds nothing else.
func rawBytes(v reflect.Value) ([]byte, bool) {
	if v.Type() == reflect.TypeFor[runtime.RawExtension]() {
		r := pointerTo[runtime.RawExtension](v)
		return r.Raw, r.Object == nil
	}
	return nil, false
}

// stringMap reads a map from a string type to a string type, without copying it if possible.
func (v value) stringMap() map[string]string {
	if v.presence != present {
		return nil
	}
	if v.CanAddr() {
		return *(*map[string]string)(v.Addr().UnsafePointer())
	}
	out := make(map[string]string, v.Len())
	for it := v.MapRange(); it.Next(); {
		out[it.Key().String()] = it.Value().String()
	}
	return out
}
