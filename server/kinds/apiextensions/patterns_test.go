package apiextensions

import (
	"fmt"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func withPatterns(n int, pattern string) *apiext.CustomResourceDefinition {
	s := &apiext.JSONSchemaProps{Type: "object", Properties: map[string]apiext.JSONSchemaProps{}}
	for i := range n {
		s.Properties[fmt.Sprint("p", i)] = apiext.JSONSchemaProps{Type: "string", Pattern: pattern}
	}
	d := &apiext.CustomResourceDefinition{}
	d.Spec.Versions = []apiext.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiext.CustomResourceValidation{OpenAPIV3Schema: s}}}
	return d
}

// TestPatterns: patterns are counted by what they are compiled to, and a definition that
// has too many already may keep them.
func TestPatterns(t *testing.T) {
	const name = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
	usual, hostile := withPatterns(1000, name), withPatterns(20000, "^a{1,500}$")
	for _, tc := range []struct {
		name   string
		d, old *apiext.CustomResourceDefinition
		ok     bool
	}{
		{"names", usual, nil, true}, {"long repetitions", hostile, nil, false}, {"as before", hostile, hostile, true}, {"now", hostile, usual, false},
		{"no pattern", withPatterns(1000, "("), nil, true}, {"classes", withPatterns(1000, `\p{L}{1000}`), nil, false},
	} {
		if errs := validatePatterns(tc.d, tc.old, field.NewPath("spec")); (len(errs) == 0) != tc.ok {
			t.Errorf("%s: %v", tc.name, errs)
		}
	}
}
