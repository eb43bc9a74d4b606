package apiextensions

import (
	"slices"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// normalize applies the effects of the round trip through the internal form to a definition: it drops nulls,
// writes numbers plainly, and removes an empty webhook. Schemas are nearly all of a definition, and only
// their JSON values change: so only the rest of the definition makes the round trip.
func normalize(d *apiextensionsv1.CustomResourceDefinition) {
	for i := range d.Spec.Versions {
		if v := &d.Spec.Versions[i]; v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			if _, err := rewriteValues(v.Schema.OpenAPIV3Schema); err != nil {
				return // some JSON in it is broken, which validation reports
			}
		}
	}
	bare := apiextensionsv1.CustomResourceDefinition{Spec: d.Spec}
	bare.Spec.Versions = make([]apiextensionsv1.CustomResourceDefinitionVersion, len(d.Spec.Versions))
	for i := range d.Spec.Versions {
		bare.Spec.Versions[i] = d.Spec.Versions[i]
		bare.Spec.Versions[i].Schema = nil
	}
	in, err := inward(&bare)
	if err != nil {
		return
	}
	var out apiextensionsv1.CustomResourceDefinitionSpec
	if apiextensionsv1.Convert_apiextensions_CustomResourceDefinitionSpec_To_v1_CustomResourceDefinitionSpec(&in.Spec, &out, nil) != nil {
		return
	}
	spec := out.DeepCopy() // versions with the same columns share them
	for i := range d.Spec.Versions {
		spec.Versions[i].Schema = d.Spec.Versions[i].Schema
	}
	if len(d.Spec.Versions) == 0 {
		spec.Versions = d.Spec.Versions
	}
	d.Spec = *spec
}

// rewrite writes a value as it is written after it was read.
func rewrite(v *apiextensionsv1.JSON) error {
	if plain(v.Raw) {
		return nil
	}
	var value apiext.JSON
	if err := apiextensionsv1.Convert_v1_JSON_To_apiextensions_JSON(v, &value, nil); err != nil {
		return err
	}
	return apiextensionsv1.Convert_apiextensions_JSON_To_v1_JSON(&value, v, nil)
}

// plain recognizes the most common values that have only one form: true, false, and texts without
// characters to escape.
func plain(raw []byte) bool {
	if string(raw) == "true" || string(raw) == "false" {
		return true
	}
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return false
	}
	return !slices.ContainsFunc(raw[1:len(raw)-1], func(c byte) bool {
		return c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&'
	})
}

// rewriteValues encodes the JSON values in a schema again, and removes empty ones. changed means that the
// schema itself was changed, and not only a value to which it points.
func rewriteValues(s *apiextensionsv1.JSONSchemaProps) (changed bool, err error) {
	for _, v := range [...]**apiextensionsv1.JSON{&s.Default, &s.Example} {
		if *v == nil {
			continue
		}
		if err := rewrite(*v); err != nil {
			return false, err
		}
		if len((*v).Raw) == 0 {
			*v, changed = nil, true
		}
	}
	for i := range s.Enum {
		if err := rewrite(&s.Enum[i]); err != nil {
			return false, err
		}
	}
	single, lists := [4]*apiextensionsv1.JSONSchemaProps{s.Not}, [4][]apiextensionsv1.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf}
	if s.Items != nil {
		single[1], lists[3] = s.Items.Schema, s.Items.JSONSchemas
	}
	for i, either := range [...]*apiextensionsv1.JSONSchemaPropsOrBool{s.AdditionalProperties, s.AdditionalItems} {
		if either != nil {
			single[2+i] = either.Schema
		}
	}
	for _, below := range single {
		if below == nil {
			continue
		}
		if _, err := rewriteValues(below); err != nil {
			return false, err
		}
	}
	for _, list := range lists {
		for i := range list {
			if _, err := rewriteValues(&list[i]); err != nil {
				return false, err
			}
		}
	}
	return changed, rewriteNamed(s)
}

// rewriteNamed is rewriteValues for the schemas in a schema that have names.
func rewriteNamed(s *apiextensionsv1.JSONSchemaProps) error {
	for _, d := range s.Dependencies {
		if d.Schema == nil {
			continue
		}
		if _, err := rewriteValues(d.Schema); err != nil {
			return err
		}
	}
	for _, m := range [...]map[string]apiextensionsv1.JSONSchemaProps{s.Properties, s.PatternProperties, s.Definitions} {
		if len(m) == 0 {
			continue
		}
		var name string
		var below apiextensionsv1.JSONSchemaProps // all share one variable, because they are large
		for name, below = range m {
			changed, err := rewriteValues(&below)
			if err != nil {
				return err
			}
			if changed {
				m[name] = below
			}
		}
	}
	return nil
}
