package schema

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smd "sigs.k8s.io/structured-merge-diff/v4/schema"
	"sigs.k8s.io/structured-merge-diff/v4/typed"

	"github.com/rowlock/rowlock/server/kinds"
)

// Schemas gives the types of all kinds of a catalogue to those who merge objects.
type Schemas struct {
	shapes
	catalogue *kinds.Catalogue

	mu    sync.Mutex
	typed map[reflect.Type]*typed.ParseableType
	// Custom finds the converter of a custom resource; nil, or a nil answer, means
	// that nothing is known of its fields. Set before first use.
	Custom func(schema.GroupVersionKind) managedfields.TypeConverter
}

// New makes the schemas of a catalogue. It reads nothing yet.
func New(catalogue *kinds.Catalogue) *Schemas {
	return &Schemas{catalogue: catalogue, typed: make(map[reflect.Type]*typed.ParseableType)}
}

// Catalogue is the catalogue that the schemas are of.
func (s *Schemas) Catalogue() *kinds.Catalogue { return s.catalogue }

// ObjectToTyped gives an object its merge type, by its kind. With TypedToObject it
// makes Schemas a managedfields.TypeConverter.
func (s *Schemas) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	r := s.catalogue.LookupKind(gvk)
	if r == nil || r.New == nil {
		return nil, fmt.Errorf("no corresponding type for %v", gvk)
	}
	if !r.HasGoType() {
		return s.customConverter(gvk).ObjectToTyped(obj, opts...)
	}
	return s.Typed(r.GoType(), obj, opts...)
}

// Typed gives an object, typed or unstructured, the merge type of a Go struct.
func (s *Schemas) Typed(as reflect.Type, obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	t, err := s.mergeType(as)
	if err != nil {
		return nil, err
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return t.FromUnstructured(u.UnstructuredContent(), opts...)
	}
	return t.FromStructured(obj, opts...)
}

func (s *Schemas) customConverter(gvk schema.GroupVersionKind) managedfields.TypeConverter {
	if s.Custom != nil {
		if c := s.Custom(gvk); c != nil {
			return c
		}
	}
	return managedfields.NewDeducedTypeConverter()
}

// TypedToObject makes an unstructured object of a merged value.
func (s *Schemas) TypedToObject(v *typed.TypedValue) (runtime.Object, error) {
	switch tree := v.AsValue().Unstructured().(type) {
	case map[string]any:
		return &unstructured.Unstructured{Object: tree}, nil
	default:
		return nil, fmt.Errorf("a merge gave a %T instead of an object", tree)
	}
}

func (s *Schemas) mergeType(t reflect.Type) (*typed.ParseableType, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.typed[t]; known != nil {
		return known, nil
	}
	root, err := s.Of(t)
	if err != nil {
		return nil, err
	}
	b := &smdBuilder{seen: map[string]bool{}}
	ref := b.ref(root)
	b.types = append(b.types, anyType, opaqueType)
	out := &typed.ParseableType{TypeRef: ref, Schema: &smd.Schema{Types: b.types}}
	s.typed[t] = out
	return out, nil
}

// Names of the types of values without a shape: those whose maps merge key by key,
// and those which are replaced whole.
var (
	anyName    = "any"
	opaqueName = "opaque"
	untyped    = smd.Scalar("untyped")

	anyType = smd.TypeDef{Name: anyName, Atom: smd.Atom{
		Scalar: &untyped,
		List:   &smd.List{ElementType: smd.TypeRef{NamedType: &opaqueName}, ElementRelationship: smd.Atomic},
		Map:    &smd.Map{ElementType: smd.TypeRef{NamedType: &anyName}, ElementRelationship: smd.Separable},
	}}
	opaqueType = smd.TypeDef{Name: opaqueName, Atom: smd.Atom{
		Scalar: &untyped,
		List:   &smd.List{ElementType: smd.TypeRef{NamedType: &opaqueName}, ElementRelationship: smd.Atomic},
		Map:    &smd.Map{ElementType: smd.TypeRef{NamedType: &opaqueName}, ElementRelationship: smd.Atomic},
	}}
)

// smdBuilder turns shapes into structured-merge-diff types.
type smdBuilder struct {
	types []smd.TypeDef
	seen  map[string]bool
}

func (b *smdBuilder) ref(s *Shape) smd.TypeRef {
	switch s.Form {
	case Any:
		if s.Atomic {
			return smd.TypeRef{NamedType: &opaqueName}
		}
		if s.Type.Name() == "FieldsV1" { // always an object
			return smd.TypeRef{Inlined: smd.Atom{Map: &smd.Map{ElementType: smd.TypeRef{NamedType: &anyName}}}}
		}
		return smd.TypeRef{NamedType: &anyName}
	case Struct:
		if !b.seen[s.smd] {
			b.seen[s.smd] = true
			b.types = append(b.types, smd.TypeDef{Name: s.smd, Atom: smd.Atom{Map: b.structure(s)}})
		}
		return smd.TypeRef{NamedType: &s.smd}
	case Map:
		return smd.TypeRef{Inlined: smd.Atom{Map: &smd.Map{ElementType: b.ref(s.Elem), ElementRelationship: separable(s)}}}
	case List:
		list := &smd.List{ElementType: b.ref(s.Elem), ElementRelationship: smd.Atomic}
		if !s.Atomic {
			list.ElementRelationship, list.Keys = smd.Associative, s.Keys
		}
		return smd.TypeRef{Inlined: smd.Atom{List: list}}
	}
	return smd.TypeRef{Inlined: smd.Atom{Scalar: scalarOf(s)}}
}

func separable(s *Shape) smd.ElementRelationship {
	if s.Atomic {
		return smd.Atomic
	}
	return smd.Separable
}

func (b *smdBuilder) structure(s *Shape) *smd.Map {
	m := &smd.Map{ElementRelationship: separable(s)}
	for _, f := range s.Fields {
		m.Fields = append(m.Fields, smd.StructField{Name: f.Name, Type: b.ref(f.Shape), Default: f.Default})
	}
	return m
}

func scalarOf(s *Shape) *smd.Scalar {
	out := untyped
	switch {
	case s.Self:
		if s.Type.Name() == "Duration" {
			out = smd.String
		}
	case s.Type.Kind() == reflect.String, s.Type.Kind() == reflect.Slice:
		out = smd.String
	case s.Type.Kind() == reflect.Bool:
		out = smd.Boolean
	default:
		out = smd.Numeric
	}
	return &out
}
