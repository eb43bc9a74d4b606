package apiextensions

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/e2e/bench/operators"
)

// wholly normalizes a definition by bringing all of it into the form of checks and back.
func wholly(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	in, err := inward(d.DeepCopy())
	if err != nil {
		return
	}
	var out apiextensionsv1.CustomResourceDefinitionSpec
	if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinitionSpec_To_v1_CustomResourceDefinitionSpec(&in.Spec, &out, nil); err != nil {
		t.Fatal(err)
	}
	d.Spec = out
}

// TestNormalize compares the stored results of the short and the full normalization.
func TestNormalize(t *testing.T) {
	texts := []string{
		`{"spec":{}}`, `{"spec":{"versions":[]}}`, `{"spec":{"versions":[{"name":"v1"},{"name":"v2","schema":{}}]}}`,
		`{"spec":{"conversion":{"strategy":"None","webhook":{}},"versions":[{"name":"v1","subresources":{"status":{}},"selectableFields":[]},{"name":"v2","subresources":{"status":{}}}]}}`,
		`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"a","namespace":"b"}},"conversionReviewVersions":["v1"]}}}}`,
	}
	for _, schema := range []string{
		`{"default":null,"example":null,"enum":[null,1]}`, `{"default": {"b" : 1.0, "a":[1e3, 1.50, 10000000000000000000000]} }`, `{"default":"<&>\u2028é\u00e9","example":"\"","enum":["a","\u0061"]}`,
		`{"default":" null","example":"","enum":[[],{},""]}`, `{"default":-0,"example":1e400}`, `{"default":1e400}`, `{"properties":{"a":{"properties":{"b":{"default":null,"items":{"example":null,"default":[ 1 ]}}}}}}`,
		`{"not":{"default":null},"allOf":[{"default":null}],"anyOf":[{"enum":[ 1.0 ]}],"oneOf":[{"example":null}],"items":[{"default":null},{"default":[1 ]}],"additionalItems":{"default":null},"additionalProperties":{"default": [ 2]},"dependencies":{"a":["b"],"c":{"default":null}},"patternProperties":{"x":{"default":null}},"definitions":{"d":{"example":{"z":1,"y":2}}}}`,
		`{"items":{},"required":[],"properties":{},"additionalProperties":false,"x-kubernetes-list-map-keys":[]}`,
	} {
		texts = append(texts, `{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":`+schema+`}}]}}`,
			`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":`+schema+`}},{"name":"v2","schema":{"openAPIV3Schema":`+schema+`}}]}}`,
			`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":`+schema+`}},{"name":"v2","schema":{"openAPIV3Schema":{}}}]}}`)
	}
	set := operators.New(1)
	for i := range 20 {
		d, err := set.At(i)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(d.Body))
	}
	for _, text := range texts {
		short, whole := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		for _, d := range []*apiextensionsv1.CustomResourceDefinition{short, whole} {
			if err := json.Unmarshal([]byte(text), d); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		normalize(short)
		wholly(t, whole)
		got, want := stored(t, short), stored(t, whole)
		if _, err := inward(short); err == nil && got != want { // else it is refused
			t.Errorf("%s became\n%s", text, cmp.Diff(want, got))
		}
	}
}

func stored(t *testing.T, d *apiextensionsv1.CustomResourceDefinition) string {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
