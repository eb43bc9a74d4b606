package view

import (
	"reflect"
	"sync"
	"unsafe"
)

// clearer empties the fields of a value that a view lacks.
type clearer func(p unsafe.Pointer)

// Clear empties the fields that the view lacks of what a pointer leads to.
func (v *View) Clear(obj any) {
	p := reflect.ValueOf(obj)
	if v == nil || p.Kind() != reflect.Pointer || p.IsNil() {
		return
	}
	if f := v.clearerOf(p.Type().Elem()); f != nil {
		f(p.UnsafePointer())
	}
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
		f = func(p unsafe.Pointer) { once()(p) }
	}
	made, _ := v.clearers.LoadOrStore(t, f)
	return made.(clearer)
}

func (v *View) newClearer(t reflect.Type) clearer {
	switch t.Kind() {
	case reflect.Pointer:
		elem := v.clearerOf(t.Elem())
		return func(p unsafe.Pointer) {
			if target := *(*unsafe.Pointer)(p); target != nil {
				elem(target)
			}
		}
	case reflect.Slice:
		elem, size := v.clearerOf(t.Elem()), t.Elem().Size()
		return func(p unsafe.Pointer) {
			s := *(*[]struct{})(p) // its data and its length
			data := unsafe.Pointer(unsafe.SliceData(s))
			for i := range len(s) {
				elem(unsafe.Add(data, uintptr(i)*size))
			}
		}
	case reflect.Map:
		elem := v.clearerOf(t.Elem())
		return func(p unsafe.Pointer) {
			m := reflect.NewAt(t, p).Elem()
			for it := m.MapRange(); it.Next(); {
				value := reflect.New(t.Elem())
				value.Elem().Set(it.Value())
				elem(value.UnsafePointer())
				m.SetMapIndex(it.Key(), value.Elem())
			}
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
	return func(p unsafe.Pointer) {
		for i := range steps {
			s := &steps[i]
			if at := unsafe.Add(p, s.Offset); s.clear != nil {
				s.clear(at)
			} else {
				reflect.NewAt(s.Type, at).Elem().SetZero()
			}
		}
	}
}
