package schema

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/rowlock/rowlock/codecs/view"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/schema/merging"
)

// Schemas has the types of all kinds of a catalogue, for merging objects.
type Schemas struct {
	shapes
	catalogue *kinds.Catalogue

	mu    sync.Mutex
	typed map[typeAndKind]merging.Converter
	// Custom finds the converter of a custom resource; nil, or a nil answer, means
	// that nothing is known of its fields. Set before first use.
	Custom func(schema.GroupVersionKind) merging.Converter
}

type typeAndKind struct {
	typ  reflect.Type
	kind schema.GroupVersionKind
}

// New makes the schemas of a catalogue. It reads nothing yet.
func New(catalogue *kinds.Catalogue) *Schemas {
	of := catalogue.Release()
	return &Schemas{shapes: shapes{view: of.View(), newer: of.Emulated()}, catalogue: catalogue, typed: make(map[typeAndKind]merging.Converter)}
}

// Catalogue returns the catalogue that the schemas are of.
func (s *Schemas) Catalogue() *kinds.Catalogue { return s.catalogue }

// Converter gives each object its merge type, by its kind.
func (s *Schemas) Converter() merging.Converter { return merging.Each(s.converter, s.shown) }

func (s *Schemas) converter(obj runtime.Object) (merging.Converter, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	r := s.catalogue.LookupKind(gvk)
	if r == nil || r.New == nil {
		return nil, fmt.Errorf("no corresponding type for %v", gvk)
	}
	if r.HasGoType() {
		return s.of(typeAndKind{r.GoType(), gvk})
	}
	if s.Custom != nil {
		if c := s.Custom(gvk); c != nil {
			return c, nil
		}
	}
	return managedfields.NewDeducedTypeConverter(), nil
}

// shown returns an object as clients see it, if that differs by the tags of its type. Nulls in only its metadata do not
// count: no manager owns empty fields there.
func (s *Schemas) shown(obj runtime.Object) (runtime.Object, error) {
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t.Implements(reflect.TypeFor[runtime.Unstructured]()) || !s.nullsInside(t.Elem()) {
		return obj, nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	s.view.NullTree(tree, t)
	u := &unstructured.Unstructured{Object: tree}
	u.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return u, nil
}

// nullsInside reports whether there are fields of a kind, but for its metadata, that are written as null.
func (s *Schemas) nullsInside(t reflect.Type) bool {
	if s.view == nil || !s.view.NullsAny(t) {
		return false
	}
	return slices.ContainsFunc(s.view.Fields(t), func(f view.Field) bool {
		return f.Type != reflect.TypeFor[metav1.ObjectMeta]() && s.view.NullsAny(f.Type)
	})
}

// ConverterAs gives every object, typed or unstructured, the merge type of a Go struct. Objects
// name their kind.
func (s *Schemas) ConverterAs(t reflect.Type) merging.Converter {
	return merging.Each(func(obj runtime.Object) (merging.Converter, error) {
		return s.of(typeAndKind{t, obj.GetObjectKind().GroupVersionKind()})
	}, s.shown)
}

// Merging returns the schema of an object for a merge.
func (s *Schemas) Merging(obj runtime.Object) (merging.Schema, error) {
	return merging.SchemaFor(s.Converter(), obj)
}

func (s *Schemas) of(key typeAndKind) (merging.Converter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.typed[key]; known != nil {
		return known, nil
	}
	root, err := s.Of(key.typ)
	if err != nil {
		return nil, err
	}
	out, err := managedfields.NewTypeConverter(modelsOf(root, key.kind), false)
	if err != nil {
		return nil, fmt.Errorf("the merge type of %v: %w", key.typ, err)
	}
	s.typed[key] = out
	return out, nil
}
