package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestCustomNumbers writes the replicas of a custom resource in all forms there are,
// and reads them through its scale.
func TestCustomNumbers(t *testing.T) {
	t.Parallel()
	a := newAPI(t, harness.StartT(t, harness.Options{}))
	crd := definition("numbers.example.com", "herds", "Herd", "v1")
	v := &crd.Spec.Versions[0]
	if err := json.Unmarshal([]byte(`{"type":"object","properties":{
		"spec":{"type":"object","properties":{"replicas":{"type":"integer"},"odds":{"type":"number"}}},
		"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}`), v.Schema.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	v.Schema.OpenAPIV3Schema.XPreserveUnknownFields = nil
	v.Subresources = &apiextensionsv1.CustomResourceSubresources{
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
	}
	defined(t, a, crd)
	const herds = "/apis/numbers.example.com/v1/namespaces/default/herds"
	head := func(name string) string {
		return `{"apiVersion":"numbers.example.com/v1","kind":"Herd","metadata":{"name":"` + name + `"},"spec":`
	}
	const yamlHead = "apiVersion: numbers.example.com/v1\nkind: Herd\n"
	for _, c := range []struct {
		name, method, path, typ, body string
	}{
		{"made", http.MethodPost, "", "application/json", head("made") + `{"replicas":3,"odds":3}}`},
		{"fraction", http.MethodPost, "", "application/json", head("fraction") + `{"replicas":3.0,"odds":3.0}}`},
		{"exponent", http.MethodPost, "", "application/json", head("exponent") + `{"replicas":3e0,"odds":3e0}}`},
		{"yaml", http.MethodPost, "", "application/yaml", yamlHead + "metadata: {name: yaml}\nspec: {replicas: 3.0, odds: 3}\n"},
		{"octal", http.MethodPost, "", "application/yaml", yamlHead + "metadata: {name: octal}\nspec: {replicas: 03, odds: 0x3}\n"},
		{"applied", http.MethodPatch, "/applied?fieldManager=m", "application/apply-patch+yaml", head("applied") + `{"replicas":3,"odds":3}}`},
		{"appliedyaml", http.MethodPatch, "/appliedyaml?fieldManager=m", "application/apply-patch+yaml", yamlHead + "metadata: {name: appliedyaml}\nspec: {replicas: 3.0, odds: 0x3}\n"},
		{"appliedagain", http.MethodPatch, "/applied?fieldManager=m", "application/apply-patch+yaml", yamlHead + "metadata: {name: applied}\nspec: {replicas: 3e0}\n"},
		{"merged", http.MethodPatch, "/made", "application/merge-patch+json", `{"spec":{"replicas":3e0}}`},
		{"replaced", http.MethodPatch, "/made", "application/json-patch+json", `[{"op":"replace","path":"/spec/replicas","value":3.0}]`},
	} {
		code, answer, err := a.do(t.Context(), c.method, herds+c.path, c.typ, c.body)
		if err != nil || code != http.StatusOK && code != http.StatusCreated {
			t.Errorf("%s: %d %s %v", c.name, code, answer, err)
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(c.path, "/"), "?")
		if name == "" {
			name = c.name
		}
		if scale := string(want(t, a, http.StatusOK, http.MethodGet, herds+"/"+name+"/scale", "", "")); !strings.Contains(scale, `"spec":{"replicas":3}`) {
			t.Errorf("%s: its scale is %s", c.name, scale)
		}
	}
	big := head("big") + `{"replicas":3,"odds":9007199254740993}}`
	if answer := string(want(t, a, http.StatusCreated, http.MethodPatch, herds+"/big?fieldManager=m", "application/apply-patch+yaml", big)); !strings.Contains(answer, `"odds":9007199254740993`) {
		t.Errorf("a number lost digits: %s", answer)
	}
	if code, answer, err := a.do(t.Context(), http.MethodPost, herds, "application/json", head("half")+`{"replicas":3.5}}`); err != nil || code != http.StatusUnprocessableEntity {
		t.Errorf("half a replica: %d %s %v", code, answer, err)
	}
}
