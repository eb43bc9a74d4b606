package apiextensions

import (
	"fmt"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// chain returns a schema of so many levels with a rule at each, and so many fields at the end.
func chain(levels, fields int) *apiext.JSONSchemaProps {
	s := apiext.JSONSchemaProps{Type: "object", Properties: map[string]apiext.JSONSchemaProps{}}
	for i := range fields {
		s.Properties[fmt.Sprint("f", i)] = apiext.JSONSchemaProps{Type: "boolean"}
	}
	for range levels {
		s = apiext.JSONSchemaProps{
			Type: "object", Properties: map[string]apiext.JSONSchemaProps{"a": s}, XValidations: apiext.ValidationRules{{Rule: "has(self.a)"}},
		}
	}
	return &s
}

// TestTyping: rules at each of very many levels, or above very many fields, are refused, once,
// and what definitions have is not.
func TestTyping(t *testing.T) {
	for _, c := range []struct {
		levels, fields int
		ok             bool
	}{{20, 10_000, true}, {100, 10, true}, {400, 1, false}, {10, 80_000, false}} {
		v := &apiext.CustomResourceValidation{OpenAPIV3Schema: chain(c.levels, c.fields)}
		errs := validateSchema(t.Context(), v, false, tolerance{}, "v1", field.NewPath("spec"))
		if (len(errs) == 0) != c.ok || !c.ok && (len(errs) != 1 || errs[0].Detail != tooMuchTyping) {
			t.Errorf("%d levels, %d fields: %d errors", c.levels, c.fields, len(errs))
		}
	}
}

// TestWeights: a type is weighed as what it is made of.
func TestWeights(t *testing.T) {
	s := chain(2, 3) // two objects with one field, one with three
	types, err := rootScope(s).types()
	if err != nil {
		t.Fatal(err)
	}
	below := weights{}.of(types.decl.Fields["a"].Type)
	if want := (weight{fields: 4, objects: 2, names: 2}); below != want {
		t.Errorf("%+v, want %+v", below, want)
	}
	lists := weights{}.of(types.decl)
	if lists.objects != 4 || lists.fields < below.fields { // with metadata
		t.Errorf("%+v", lists)
	}
}

// TestTexts: a definition has so many bytes of rules, unless it had more before.
func TestTexts(t *testing.T) {
	with := func(rules int, message string) *apiext.CustomResourceDefinition {
		s := &apiext.JSONSchemaProps{Type: "object", Properties: map[string]apiext.JSONSchemaProps{"a": {Type: "string"}}}
		a := s.Properties["a"]
		for range rules {
			a.XValidations = append(a.XValidations, apiext.ValidationRule{Rule: "self == 'x'", MessageExpression: message})
		}
		s.Properties["a"] = a
		d := &apiext.CustomResourceDefinition{}
		d.Spec.Versions = []apiext.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiext.CustomResourceValidation{OpenAPIV3Schema: s}}}
		return d
	}
	for name, c := range map[string]struct {
		d, old *apiext.CustomResourceDefinition
		ok     bool
	}{
		"many": {with(2000, ""), nil, true}, "very many": {with(4000, ""), nil, false}, "messages count": {with(2000, "'it is not x'"), nil, false},
		"as before": {with(4000, ""), with(4000, ""), true}, "not before": {with(4000, ""), with(2000, ""), false},
	} {
		if errs := validateTexts(c.d, c.old, field.NewPath("spec")); (len(errs) == 0) != c.ok {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
