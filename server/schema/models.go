package schema

import (
	"reflect"
	"strings"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// opaqueModel is apimachinery's name for the model of atomic values.
const opaqueModel = "io.k8s.apimachinery.pkg.runtime.RawExtension"

// models describes shapes in OpenAPI, from which apimachinery derives merge types.
type models map[string]*spec.Schema

// modelsOf describes a Struct, and all that is in it, as the kind.
func modelsOf(root *Shape, kind apischema.GroupVersionKind) models {
	m := models{opaqueModel: {}}
	m.ref(root)
	m[modelName(root)].AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
	})
	return m
}

// modelName returns a name without the characters that would end it in a reference.
func modelName(s *Shape) string { return strings.NewReplacer("/", ".", " ", "-").Replace(s.model) }

func refTo(name string) *spec.Schema { return spec.RefSchema("#/components/schemas/" + name) }

// ref describes a shape in the place where it is used.
func (m models) ref(s *Shape) *spec.Schema {
	switch s.Form {
	case Any:
		switch {
		case s.Atomic:
			return refTo(opaqueModel)
		case s.Type.Name() == "FieldsV1": // always an object
			return typedAs("object", "")
		}
		return &spec.Schema{}
	case Struct:
		name := modelName(s)
		if m[name] == nil {
			out := typedAs("object", "")
			m[name] = out
			out.Properties = make(map[string]spec.Schema, len(s.Fields))
			for _, f := range s.Fields {
				property := *m.ref(f.Shape)
				property.Default = f.Default
				out.Properties[f.Name] = property
			}
			out.AdditionalProperties = &spec.SchemaOrBool{} // none
			whole(out, s)
		}
		return refTo(name)
	case Map:
		out := spec.MapProperty(m.ref(s.Elem))
		whole(out, s)
		return out
	case List:
		out := spec.ArrayProperty(m.ref(s.Elem))
		switch {
		case s.Atomic:
			out.AddExtension("x-kubernetes-list-type", "atomic")
		case len(s.Keys) == 0:
			out.AddExtension("x-kubernetes-list-type", "set")
		default:
			out.AddExtension("x-kubernetes-list-type", "map")
			out.AddExtension("x-kubernetes-list-map-keys", s.Keys)
		}
		return out
	}
	return scalarOf(s)
}

// whole marks an object as atomic.
func whole(m *spec.Schema, s *Shape) {
	if s.Atomic {
		m.AddExtension("x-kubernetes-map-type", "atomic")
	} else {
		m.AddExtension("x-kubernetes-map-type", "granular")
	}
}

func scalarOf(s *Shape) *spec.Schema {
	switch {
	case s.Self && s.Type.Name() != "Duration":
		return typedAs("string", "int-or-string") // numbers too
	case s.Self, s.Type.Kind() == reflect.String, s.Type.Kind() == reflect.Slice:
		return typedAs("string", "")
	case s.Type.Kind() == reflect.Bool:
		return typedAs("boolean", "")
	}
	return typedAs("number", "")
}

func typedAs(name, format string) *spec.Schema {
	return (&spec.Schema{}).Typed(name, format)
}
