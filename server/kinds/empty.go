package kinds

import (
	"reflect"
	"strings"
	"sync"
)

// DropEmpty sets empty lists and maps of a built-in object to nil where JSON shows
// the difference, as [] and null. A stock server loses it when it stores an object
// as protobuf; it reads back as null.
func DropEmpty(obj Object) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return
	}
	emptiesOf(v.Type().Elem()).drop(v.Elem())
}

// empties locates such fields in a type; nil if there are none.
type empties struct {
	fields []emptyField // of a struct
	elem   *empties     // of a list or a pointer
}

type emptyField struct {
	index  int
	shown  bool // an empty list or map here is not left out
	inside *empties
}

var (
	emptiesKnown sync.Map // reflect.Type -> *empties; a pure function of the type
	emptiesMu    sync.Mutex
)

func emptiesOf(t reflect.Type) *empties {
	if known, ok := emptiesKnown.Load(t); ok {
		return known.(*empties)
	}
	emptiesMu.Lock()
	defer emptiesMu.Unlock()
	e := findEmpties(t, map[reflect.Type]bool{})
	emptiesKnown.Store(t, e)
	return e
}

// findEmpties looks through a type; open are the types it is inside of, for those
// that contain themselves.
func findEmpties(t reflect.Type, open map[reflect.Type]bool) *empties {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		if inside := findEmpties(t.Elem(), open); inside != nil {
			return &empties{elem: inside}
		}
	case reflect.Struct:
		if _, self := reflect.PointerTo(t).MethodByName("UnmarshalJSON"); self || open[t] {
			return nil
		}
		open[t] = true
		defer delete(open, t)
		var out empties
		for i := range t.NumField() {
			f := t.Field(i)
			tag, tagged := f.Tag.Lookup("json")
			if !tagged || !f.IsExported() {
				continue
			}
			shown := (f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map) && !strings.Contains(tag, ",omitempty")
			if inside := findEmpties(f.Type, open); shown || inside != nil {
				out.fields = append(out.fields, emptyField{i, shown, inside})
			}
		}
		if out.fields != nil {
			return &out
		}
	}
	return nil
}

func (e *empties) drop(v reflect.Value) {
	if e == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			e.elem.drop(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			e.elem.drop(v.Index(i))
		}
	case reflect.Struct:
		for i := range e.fields {
			f := &e.fields[i]
			field := v.Field(f.index)
			if f.shown && field.Len() == 0 && !field.IsNil() {
				field.SetZero()
			}
			f.inside.drop(field)
		}
	}
}
