package apiextensions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/kinds/apiextensions"
	"github.com/rowlock/rowlock/server/release"
)

// TestUnknownFormats: from release 1.33 on, a definition warns of formats that mean nothing there, once.
func TestUnknownFormats(t *testing.T) {
	withFormat := func(formats ...string) *apiextensionsv1.CustomResourceDefinition {
		root := &apiextensionsv1.JSONSchemaProps{Type: "object"}
		for _, format := range formats {
			root.AllOf = append(root.AllOf, apiextensionsv1.JSONSchemaProps{Type: "string", Format: format})
		}
		root.Properties = map[string]apiextensionsv1.JSONSchemaProps{"n": {Type: "integer", Format: "int32"}}
		return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root}},
		}}}
	}
	for _, c := range []struct {
		of       release.Version
		now, old *apiextensionsv1.CustomResourceDefinition
		want     []string
	}{
		{release.V132, withFormat("odd"), nil, nil},
		{release.V133, withFormat("odd", "date-time", "odd", "strange"), nil, []string{`unrecognized format "odd"`, `unrecognized format "strange"`}},
		{release.V136, withFormat("odd", "strange"), withFormat("odd"), []string{`unrecognized format "strange"`}},
		{release.V134, withFormat("k8s-short-name"), nil, []string{`unrecognized format "k8s-short-name"`}},
		{release.V135, withFormat("k8s-short-name"), nil, nil},
	} {
		var got []string
		strategy := apiextensions.CustomResourceDefinition(c.of)
		switch {
		case strategy.Warnings == nil:
		case c.old == nil:
			got = strategy.Warnings(t.Context(), c.now, nil)
		default:
			got = strategy.Warnings(t.Context(), c.now, c.old)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.of, diff)
		}
	}
}
