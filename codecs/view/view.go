// Package view selects the fields of Go types that exist for clients: a server can emulate an older release than the
// one whose types it was built with.
//
// All readers treat a field that a view lacks as an unknown field, and no object that they return has it. A nil view has
// all fields, and writes them by their tags.
package view

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// View selects fields. It caches its results for each type, so servers of the same release share one.
type View struct {
	lacks, nulls func(t reflect.Type, field string) bool
	embedded     bool
	structs      sync.Map // reflect.Type -> []Field
	differs      sync.Map // question -> bool
	clearers     sync.Map // reflect.Type -> clearer
}

// New makes a view. lacks reports, for a struct and the JSON name of a field, whether the view lacks the field,
// and nulls whether an empty field is written as null although its tags omit it. For a field of an
// embedded struct, t is the embedded struct. Both must always return the same for the same field.
// embedded means that errors about a field of an embedded struct name this struct, too.
func New(lacks, nulls func(t reflect.Type, field string) bool, embedded bool) *View {
	return &View{lacks: lacks, nulls: nulls, embedded: embedded}
}

// NamesEmbedded makes errors about a field of an embedded struct name this struct, like those of the library.
func (v *View) NamesEmbedded() bool { return v == nil || v.embedded }

// Lacks reports whether the view lacks a field.
func (v *View) Lacks(t reflect.Type, field string) bool { return v != nil && v.lacks(t, field) }

// Nulls reports whether an empty field is written as null.
func (v *View) Nulls(t reflect.Type, field string) bool { return v != nil && v.nulls(t, field) }

// Field is a field of a struct, or of an embedded struct.
type Field struct {
	Name   string // in JSON
	Type   reflect.Type
	Offset uintptr
	Lacked bool
	Null   bool
}

// Fields returns the fields of a struct in order, those of embedded structs in their place. A type with its own
// codec has none.
func (v *View) Fields(t reflect.Type) []Field {
	if fields, ok := v.structs.Load(t); ok {
		return fields.([]Field)
	}
	fields, _ := v.structs.LoadOrStore(t, v.fields(t, 0))
	return fields.([]Field)
}

func (v *View) fields(t reflect.Type, base uintptr) (out []Field) {
	if own(t) {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !f.IsExported():
		case f.Anonymous && name == "":
			if f.Type.Kind() == reflect.Struct {
				out = append(out, v.fields(f.Type, base+f.Offset)...)
			}
		default:
			name = cmp.Or(name, f.Name)
			out = append(out, Field{name, f.Type, base + f.Offset, v.lacks(t, name), v.nulls(t, name)})
		}
	}
	return out
}

var (
	marshaler   = reflect.TypeFor[json.Marshaler]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

// own reports whether a type reads or writes itself.
func own(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(unmarshaler) || p.Implements(marshaler)
}

type fieldKey struct {
	t     reflect.Type
	nulls bool
}

// LacksAny reports whether the view lacks a field of a type, or of a type in it.
func (v *View) LacksAny(t reflect.Type) bool { return v.any(fieldKey{t, false}) }

// NullsAny reports whether an empty field of a type, or of a type in it, is written as null.
func (v *View) NullsAny(t reflect.Type) bool { return v.any(fieldKey{t, true}) }

func (v *View) any(q fieldKey) bool {
	if v == nil {
		return false
	}
	if known, ok := v.differs.Load(q); ok {
		return known.(bool)
	}
	found := v.search(q.t, q.nulls, map[reflect.Type]bool{})
	v.differs.Store(q, found)
	return found
}

func (v *View) search(t reflect.Type, nulls bool, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return !own(t) && v.search(t.Elem(), nulls, seen)
	case reflect.Struct:
		if seen[t] {
			return false
		}
		seen[t] = true
		return slices.ContainsFunc(v.Fields(t), func(f Field) bool {
			return nulls && f.Null || !nulls && f.Lacked || v.search(f.Type, nulls, seen)
		})
	}
	return false
}
