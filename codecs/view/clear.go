package view

import (
	"reflect"
	"sync"
	"unsafe"
)

// clearer empties the fields of a value that a view lacks, and reports whether there were any that were not empty.
type clearer func(p unsafe.Pointer) (found bool)

// Clear empties the fields that the view lacks in the value to which a pointer points, and reports whether
// any of them was not empty.
func (v *View) Clear(obj any) (found bool) {
	p := reflect.ValueOf(obj)
	if v == nil || p.Kind() != reflect.Pointer || p.IsNil() {
		return false
	}
	f := v.clearerOf(p.Type().Elem())
	return f != nil && f(p.UnsafePointer())
}

// clearerOf returns nil for a type if the view has all fields of it and of the types in it.
func (v *View) clearerOf(t reflect.Type) clearer {
	if f, ok := v.clearers.Load(t); ok {
		return f.(clearer)
	}
	var f clearer
	if v.LacksAny(t) {
		// A type may contain itself, so its clearer is made on first use.
		once := sync.OnceValue(func() clearer { return v.newClearer(t) })
		f = func(p unsafe.Pointer) bool { return once()(p) }
	}
	made, _ := v.clearers.LoadOrStore(t, f)
	return made.(clearer)
}

func (v *View) newClearer(t reflect.Type) clearer {
	switch t.Kind() {
	case reflect.Pointer:
		elem := v.clearerOf(t.Elem())
		return func(p unsafe.Pointer) bool {
			target := *(*unsafe.Pointer)(p)
			return target != nil && elem(target)
		}
	case reflect.Slice:
		elem, size := v.clearerOf(t.Elem()), t.Elem().Size()
		return func(p unsafe.Pointer) (found bool) {
			s := *(*[]struct{})(p) // its data and its length
			data := unsafe.Pointer(unsafe.SliceData(s))
			for i := range len(s) {
				found = elem(unsafe.Add(data, uintptr(i)*size)) || found
			}
			return found
		}
	case reflect.Map:
		elem := v.clearerOf(t.Elem())
		return func(p unsafe.Pointer) (found bool) {
			m := reflect.NewAt(t, p).Elem()
			for it := m.MapRange(); it.Next(); {
				value := reflect.New(t.Elem())
				value.Elem().Set(it.Value())
				if elem(value.UnsafePointer()) {
					m.SetMapIndex(it.Key(), value.Elem())
					found = true
				}
			}
			return found
		}
	}
	type step struct {
		Field
		clear clearer // nil: all of it
	}
	var steps []step
	for _, f := range v.Fields(t) {
		if f.Lacked {
			steps = append(steps, step{Field: f})
		} else if c := v.clearerOf(f.Type); c != nil {
			steps = append(steps, step{f, c})
		}
	}
	return func(p unsafe.Pointer) (found bool) {
		for i := range steps {
			s := &steps[i]
			if at := unsafe.Add(p, s.Offset); s.clear != nil {
				found = s.clear(at) || found
			} else if lacked := reflect.NewAt(s.Type, at).Elem(); !lacked.IsZero() {
				lacked.SetZero()
				found = true
			}
		}
		return found
	}
}
