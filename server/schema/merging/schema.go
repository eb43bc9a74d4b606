package merging

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// atomic is the relationship of values that one manager owns as a whole, and associative that of lists whose
// items have keys.
const (
	atomic      = "atomic"
	associative = "associative"
)

// Schema is the merge schema of a value: above all, the key fields of the items of lists. The zero Schema has no keys:
// items are identified by their index.
type Schema struct {
	types, ref reflect.Value // the library's *schema.Schema and schema.TypeRef
}

// SchemaOf returns the schema of a typed value of the library, whatever its version.
func SchemaOf[S, R any](v described[S, R]) Schema {
	return Schema{reflect.ValueOf(v.Schema()), reflect.ValueOf(v.TypeRef())}
}

// SchemaFor returns the schema of an object.
func SchemaFor(c Converter, obj runtime.Object) (Schema, error) { return schemaFor(c, obj) }

type described[S, R any] interface {
	Schema() S
	TypeRef() R
}

func schemaFor[C convertor[V, O], V described[S, R], O, S, R any](c C, obj runtime.Object) (Schema, error) {
	v, err := c.ObjectToTyped(obj)
	if err != nil {
		return Schema{}, err
	}
	return SchemaOf[S, R](v), nil
}

// part returns the library's schema of a Map, or a List; ok is false if the value is neither.
func (s Schema) part(name string) (part reflect.Value, ok bool) {
	if !s.types.IsValid() {
		return part, false
	}
	out := s.types.MethodByName("Resolve").Call([]reflect.Value{s.ref})
	if !out[1].Bool() {
		return part, false
	}
	part = out[0].FieldByName(name)
	return part, !part.IsNil()
}

// Field returns the schema of a field of an object; known is false for one that has the schema of any.
func (s Schema) Field(name string) (field Schema, known bool) {
	m, ok := s.part("Map")
	if !ok {
		return Schema{}, false
	}
	if out := m.MethodByName("FindField").Call([]reflect.Value{reflect.ValueOf(name)}); out[1].Bool() {
		return Schema{s.types, out[0].FieldByName("Type")}, true
	}
	return Schema{s.types, m.Elem().FieldByName("ElementType")}, false
}

// Default reports whether an absent key field of a list item has a default.
func (s Schema) Default(name string) (value any, has bool) {
	m, ok := s.part("Map")
	if !ok {
		return nil, false
	}
	out := m.MethodByName("FindField").Call([]reflect.Value{reflect.ValueOf(name)})
	if !out[1].Bool() {
		return nil, false
	}
	value = out[0].FieldByName("Default").Interface()
	return value, value != nil
}

// Items returns the schema of the items of a list, and the keys that distinguish them: some of their fields, or,
// in a set, their values.
func (s Schema) Items() (item Schema, keys []string, set bool) {
	l, ok := s.part("List")
	if !ok {
		return Schema{}, nil, false
	}
	keys, _ = l.Elem().FieldByName("Keys").Interface().([]string)
	return Schema{s.types, l.Elem().FieldByName("ElementType")}, keys, relationship(l) == associative && len(keys) == 0
}

// WholeMap reports whether an object has one owner, and is replaced as a whole.
func (s Schema) WholeMap() bool {
	m, ok := s.part("Map")
	return ok && relationship(m) == atomic
}

// WholeList reports whether a list has one owner, and is replaced as a whole.
func (s Schema) WholeList() bool {
	l, ok := s.part("List")
	return ok && relationship(l) == atomic
}

func relationship(part reflect.Value) string {
	return part.Elem().FieldByName("ElementRelationship").String()
}
