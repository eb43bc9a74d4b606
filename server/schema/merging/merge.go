// Package merging uses structured-merge-diff, the library that merges objects, only through apimachinery.
// Releases of apimachinery have different major versions of that library, which are different modules, and a
// program that embeds rowlock selects the release. So neither this package nor its users name a type of the
// library: the compiler infers them from apimachinery.
package merging

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// Converter converts objects to values of the merge library, which have merge schemas, and back.
type Converter = managedfields.TypeConverter

// convertor is Converter for any types of the library's values and options.
type convertor[V, O any] interface {
	ObjectToTyped(runtime.Object, ...O) (V, error)
	TypedToObject(V) (runtime.Object, error)
}

// Each returns a converter that calls, for each object, the converter that find returns for it, with the
// result of shown for the object.
func Each(find func(runtime.Object) (Converter, error), shown func(runtime.Object) (runtime.Object, error)) Converter {
	return eachOf(managedfields.NewDeducedTypeConverter(), find, shown)
}

func eachOf[C convertor[V, O], V, O any](deduced C, find func(runtime.Object) (C, error), shown func(runtime.Object) (runtime.Object, error)) each[C, V, O] {
	return each[C, V, O]{find, shown, deduced}
}

type each[C convertor[V, O], V, O any] struct {
	find    func(runtime.Object) (C, error)
	shown   func(runtime.Object) (runtime.Object, error)
	deduced C
}

func (e each[C, V, O]) ObjectToTyped(obj runtime.Object, opts ...O) (v V, err error) {
	c, err := e.find(obj)
	if err != nil {
		return v, err
	}
	if obj, err = e.shown(obj); err != nil {
		return v, err
	}
	return c.ObjectToTyped(obj, opts...)
}

// TypedToObject makes a tree, whatever the kind.
func (e each[C, V, O]) TypedToObject(v V) (runtime.Object, error) { return e.deduced.TypedToObject(v) }

// Patch is an object that is merged into another one.
type Patch struct {
	Schema Schema
	into   func(live runtime.Object) (map[string]any, error)
}

// NewPatch reads a patch of a kind of c.
func NewPatch(c Converter, obj runtime.Object) (*Patch, error) { return patchOf(c, obj) }

// Into returns the result of applying the patch to live. Neither is changed.
func (p *Patch) Into(live runtime.Object) (map[string]any, error) { return p.into(live) }

type merger[V, S, R any] interface {
	described[S, R]
	Merge(V) (V, error)
}

func patchOf[C convertor[V, O], V merger[V, S, R], O, S, R any](c C, obj runtime.Object) (*Patch, error) {
	patch, err := c.ObjectToTyped(obj)
	if err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	into := func(live runtime.Object) (map[string]any, error) {
		was, err := c.ObjectToTyped(live)
		if err != nil {
			return nil, fmt.Errorf("failed to convert original object to typed object: %w", err)
		}
		merged, err := was.Merge(patch)
		if err != nil {
			return nil, fmt.Errorf("failed to merge patch: %w", err)
		}
		out, err := c.TypedToObject(merged)
		if err != nil {
			return nil, err
		}
		tree, ok := out.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("a merge gave a %T instead of an object", out)
		}
		return tree.Object, nil
	}
	return &Patch{SchemaOf[S, R](patch), into}, nil
}

// fieldManager is the type of apimachinery's constructor of field managers.
type fieldManager[K ~string, F any] func(Converter, runtime.ObjectConvertor, runtime.ObjectDefaulter, runtime.ObjectCreater,
	apischema.GroupVersionKind, apischema.GroupVersion, string, map[K]F) (*managedfields.FieldManager, error)

// Kind holds the arguments of NewFieldManager.
type Kind struct {
	Converter   Converter
	Convertor   runtime.ObjectConvertor
	Defaulter   runtime.ObjectDefaulter
	Creater     runtime.ObjectCreater
	Kind        apischema.GroupVersionKind
	Subresource string
	ResetFields [][]string // paths, by the names of fields, that a write does not own
	Custom      bool
}

// NewFieldManager makes a field manager.
func NewFieldManager(k Kind) (*managedfields.FieldManager, error) {
	if k.Custom {
		return newFieldManager(managedfields.NewDefaultCRDFieldManager, k)
	}
	return newFieldManager(managedfields.NewDefaultFieldManager, k)
}

func newFieldManager[K ~string, F filter[P], P set[S], S any](build fieldManager[K, F], k Kind) (*managedfields.FieldManager, error) {
	version := k.Kind.GroupVersion()
	reset := map[K]F{}
	if len(k.ResetFields) > 0 {
		text, err := fieldsOf(k.ResetFields)
		if err != nil {
			return nil, err
		}
		excluded := P(new(S))
		if err := excluded.FromJSON(strings.NewReader(text)); err != nil {
			return nil, fmt.Errorf("reading reset fields: %w", err)
		}
		filter, ok := any(except[P, S]{excluded}).(F)
		if !ok {
			return nil, fmt.Errorf("%T is no filter of fields", except[P, S]{})
		}
		reset[K(version.String())] = filter
	}
	return build(k.Converter, k.Convertor, k.Defaulter, k.Creater, k.Kind, version, k.Subresource, reset)
}

// set is a set of fields of the library.
type set[S any] interface {
	*S
	FromJSON(io.Reader) error
	RecursiveDifference(*S) *S
}

type filter[P any] interface{ Filter(P) P }

// except is a filter that takes fields, and all below them, away.
type except[P set[S], S any] struct{ fields P }

func (e except[P, S]) Filter(s P) P { return s.RecursiveDifference(e.fields) }

// fieldsOf writes paths as FieldsV1.
func fieldsOf(paths [][]string) (string, error) {
	root := map[string]any{}
	for _, path := range paths {
		at := root
		for _, name := range path {
			below, ok := at["f:"+name].(map[string]any)
			if !ok {
				below = map[string]any{}
				at["f:"+name] = below
			}
			at = below
		}
		at["."] = struct{}{}
	}
	text, err := json.Marshal(root)
	return string(text), err
}

// Paths returns the places of a field in the versions of a kind, each by the names of fields.
func Paths(byVersion map[string][]string) managedfields.ResourcePathMappings {
	out := managedfields.ResourcePathMappings{}
	for version, names := range byVersion {
		path := out[version] // none yet
		for i := range names {
			path = append(path, managedfields.ResourcePathMappings{"": {{FieldName: &names[i]}}}[""]...)
		}
		out[version] = path
	}
	return out
}
