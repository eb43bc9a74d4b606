package apiextensions

import (
	"iter"
	"maps"
	"slices"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A stock server checks definitions in an internal form, in which the common parts of all versions appear
// once, at the top. Messages contain paths and values of that form ("spec.validation.openAPIV3Schema"), and
// clients read them.

// inward gives a definition that form. They share memory, which no check changes.
func inward(d *apiextensionsv1.CustomResourceDefinition) (*apiext.CustomResourceDefinition, error) {
	out := &apiext.CustomResourceDefinition{}
	return out, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d, out, nil)
}

// schemas returns the schemas of a definition, each once.
func schemas(spec *apiext.CustomResourceDefinitionSpec) iter.Seq[*apiext.JSONSchemaProps] {
	return func(yield func(*apiext.JSONSchemaProps) bool) {
		all := []*apiext.CustomResourceValidation{spec.Validation}
		for i := range spec.Versions {
			all = append(all, spec.Versions[i].Schema)
		}
		for _, v := range all {
			if v != nil && v.OpenAPIV3Schema != nil && !yield(v.OpenAPIV3Schema) {
				return
			}
		}
	}
}

// nodes returns a schema and all schemas in it. They must not be kept.
func nodes(s *apiext.JSONSchemaProps) iter.Seq[*apiext.JSONSchemaProps] {
	return func(yield func(*apiext.JSONSchemaProps) bool) { eachNode(s, yield) }
}

func eachNode(s *apiext.JSONSchemaProps, yield func(*apiext.JSONSchemaProps) bool) bool {
	if s == nil {
		return true
	}
	if !yield(s) {
		return false
	}
	inside := [4]*apiext.JSONSchemaProps{s.Not}
	lists := [4][]apiext.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf}
	if s.Items != nil {
		inside[1], lists[3] = s.Items.Schema, s.Items.JSONSchemas
	}
	for i, either := range [...]*apiext.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
		if either != nil {
			inside[2+i] = either.Schema
		}
	}
	for _, d := range s.Dependencies {
		if !eachNode(d.Schema, yield) {
			return false
		}
	}
	for _, n := range inside {
		if !eachNode(n, yield) {
			return false
		}
	}
	for _, list := range lists {
		for i := range list {
			if !eachNode(&list[i], yield) {
				return false
			}
		}
	}
	for _, m := range [...]map[string]apiext.JSONSchemaProps{s.Properties, s.PatternProperties, s.Definitions} {
		if len(m) > 0 && !eachNamed(m, yield) {
			return false
		}
	}
	return true
}

// eachNamed is eachNode for schemas that have names. All of them are shown in one place: a schema is large,
// and copying each was most of the cost of such a walk.
func eachNamed(m map[string]apiext.JSONSchemaProps, yield func(*apiext.JSONSchemaProps) bool) bool {
	var n apiext.JSONSchemaProps
	for _, n = range m {
		if !eachNode(&n, yield) {
			return false
		}
	}
	return true
}

// anyNode reports whether is holds for a node of any schema of a definition.
func anyNode(spec *apiext.CustomResourceDefinitionSpec, is func(*apiext.JSONSchemaProps) bool) bool {
	for s := range schemas(spec) {
		for n := range nodes(s) {
			if is(n) {
				return true
			}
		}
	}
	return false
}

// sorted returns the entries of a map in the order of their keys, so that the same
// definition always gets the same answer.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
