package apiextensions_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"github.com/rowlock/rowlock/server/kinds/apiextensions"
	"github.com/rowlock/rowlock/server/release"
)

// FuzzDefinition: the checks do not panic, whatever a definition
// contains, and normal definitions stay as they are.
func FuzzDefinition(f *testing.F) {
	for _, text := range []string{
		definition,
		`{"spec":{"versions":[{"storage":true}]}}`,
		`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","default":null,"items":[{"type":"string"}],"additionalProperties":false}}}]}}`,
		`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"a":{"additionalProperties":true}},"x-kubernetes-validations":[{"rule":"self.a.b == oldSelf.a","fieldPath":".a.b.c"}]}},"selectableFields":[{"jsonPath":".a.b.c"},{"jsonPath":"."}]}]}}`,
		`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"l":{"type":"array","maxItems":-1,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string","default":"x"}},"x-kubernetes-validations":[{"rule":"self.k != ''","messageExpression":"self.k"}]}}}}}}]}}`,
		`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"path":"//"},"caBundle":"eA=="},"conversionReviewVersions":[]}}}}`,
		`{"spec":{"versions":[{"name":"v1","selectableFields":[{"jsonPath":".` + strings.Repeat("a", 1<<17) + `"}],"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if len(data) > 1<<18 || json.Unmarshal(data, d) != nil {
			return
		}
		s := apiextensions.CustomResourceDefinition(release.Default)
		s.Default(d)
		again := d.DeepCopy()
		s.Default(again)
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("the second time it became something else:\n%s", diff)
		}
		s.PrepareForCreate(context.Background(), d)
		if len(s.Validate(context.Background(), d)) == 0 {
			buildValidators(t, d)
		}
		s.ValidateUpdate(context.Background(), d, again)
		apiextensions.CustomResourceDefinition(release.Default).Status.ValidateUpdate(context.Background(), d, again)
	})
}

// buildValidators sees that the library can make validators of schemas that pass, which stock
// servers try.
func buildValidators(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range d.Spec.Versions {
		in := &apiext.CustomResourceValidation{}
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, in, nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := validation.NewSchemaValidator(in.OpenAPIV3Schema); err != nil {
			t.Errorf("version %s passes, and there is no validator of it: %v", v.Name, err)
		}
	}
}
