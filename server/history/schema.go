package history

import (
	smd "sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"
)

// Schema is what a merge knows of a value: above all, which fields tell the items of a list
// apart. The zero Schema knows nothing: items are told apart by their places.
type Schema struct {
	types *smd.Schema
	ref   smd.TypeRef
}

// SchemaOf is the schema of a value that a merge would know.
func SchemaOf(v *typed.TypedValue) Schema {
	if v == nil {
		return Schema{}
	}
	return Schema{types: v.Schema(), ref: v.TypeRef()}
}

func (s Schema) atom() smd.Atom {
	if s.types == nil {
		return smd.Atom{}
	}
	atom, _ := s.types.Resolve(s.ref)
	return atom
}

// field is the schema of a field of an object.
func (s Schema) field(name string) Schema {
	m := s.atom().Map
	if m == nil {
		return Schema{}
	}
	if f, ok := m.FindField(name); ok {
		return Schema{s.types, f.Type}
	}
	return Schema{s.types, m.ElementType}
}

// items is the schema of the items of a list, and what tells them apart: some of their fields,
// or, in a set, what they are.
func (s Schema) items() (item Schema, keys []string, set bool) {
	l := s.atom().List
	if l == nil {
		return Schema{}, nil, false
	}
	associative := l.ElementRelationship == smd.Associative
	return Schema{s.types, l.ElementType}, l.Keys, associative && len(l.Keys) == 0
}
