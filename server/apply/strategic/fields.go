package strategic

import (
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// field defines how a field is merged.
type field struct {
	typ      reflect.Type // of the object, or of a list's items
	strategy string       // "merge", "replace" or ""
	key      string       // of a list's items; "" where they are scalars
}

// found is the answer of one lookup.
type found struct {
	field *field
	err   error
}

// fields are the answers for the fields of one type, by their names.
type fields struct {
	objects, lists map[string]found
}

// known caches a pure function of the type.
var known sync.Map // reflect.Type -> *fields

// objectField returns how the field of that name is merged where it holds an object.
func objectField(t reflect.Type, name string) (*field, error) {
	f, ok := fieldsOf(t).objects[name]
	if !ok {
		f = lookupObject(t, name) // another case, or no field
	}
	return f.field, f.err
}

// listField returns how the field of that name is merged where it holds a list.
func listField(t reflect.Type, name string) (*field, error) {
	f, ok := fieldsOf(t).lists[name]
	if !ok {
		f = lookupList(t, name)
	}
	return f.field, f.err
}

func fieldsOf(t reflect.Type) *fields {
	if f, ok := known.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{objects: map[string]found{}, lists: map[string]found{}}
	each(t, func(name string) {
		f.objects[name], f.lists[name] = lookupObject(t, name), lookupList(t, name)
	})
	known.Store(t, f)
	return f
}

// each visits the JSON names of a struct's fields.
func each(t reflect.Type, visit func(name string)) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			visit(name)
		case f.Anonymous:
			each(f.Type, visit)
		}
	}
}

func lookupObject(t reflect.Type, name string) found {
	return answer(strategicpatch.PatchMetaFromStruct{T: t}.LookupPatchMetadataForStruct(name))
}

func lookupList(t reflect.Type, name string) found {
	return answer(strategicpatch.PatchMetaFromStruct{T: t}.LookupPatchMetadataForSlice(name))
}

func answer(schema strategicpatch.LookupPatchMeta, meta strategicpatch.PatchMeta, err error) found {
	if err != nil {
		return found{err: err}
	}
	f := &field{typ: schema.(strategicpatch.PatchMetaFromStruct).T, key: meta.GetPatchMergeKey()}
	for _, s := range meta.GetPatchStrategies() {
		if s != "retainKeys" {
			f.strategy = s
		}
	}
	return found{field: f}
}
