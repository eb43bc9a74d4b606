package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestCustomStatusDefaults makes objects whose status has defaults: the status that a client
// sends is dropped, and the defaults are there at once, in dry runs too.
func TestCustomStatusDefaults(t *testing.T) {
	t.Parallel()
	a := newAPI(t, harness.StartT(t, harness.Options{}))
	for plural, schema := range map[string]string{
		"whole": `{"type":"object","default":{},"properties":{"phase":{"type":"string","default":"Pending"}}}`,
		"inner": `{"type":"object","properties":{"phase":{"type":"string","default":"Pending"}}}`,
	} {
		crd := definition("status.example.com", plural, "Kind"+plural, "v1", "v2")
		for i := range crd.Spec.Versions {
			v := &crd.Spec.Versions[i]
			v.Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{}
			unmarshal(t, []byte(`{"type":"object","properties":{"status":`+schema+`}}`), v.Schema.OpenAPIV3Schema)
			v.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
		defined(t, a, crd)
	}
	phase := func(body []byte) string {
		var obj struct{ Status *struct{ Phase string } }
		if err := json.Unmarshal(body, &obj); err != nil {
			t.Fatal(err)
		}
		if obj.Status == nil {
			return "none"
		}
		return obj.Status.Phase
	}
	for _, c := range []struct{ plural, version, name, method, query, typ, want string }{
		{"whole", "v1", "a", http.MethodPost, "", "application/json", "Pending"},
		{"whole", "v2", "b", http.MethodPost, "", "application/json", "Pending"},
		{"whole", "v1", "c", http.MethodPatch, "/c?fieldManager=m&", "application/apply-patch+yaml", "Pending"},
		{"inner", "v1", "a", http.MethodPost, "", "application/json", "none"},
		{"inner", "v2", "b", http.MethodPost, "", "application/json", "none"},
	} {
		collection := "/apis/status.example.com/" + c.version + "/namespaces/default/" + c.plural
		body := `{"apiVersion":"status.example.com/` + c.version + `","kind":"Kind` + c.plural + `","metadata":{"name":"` + c.name + `"},"status":{"phase":"Mine"}}`
		query := c.query
		if query == "" {
			query = "?"
		}
		if got := phase(want(t, a, http.StatusCreated, c.method, collection+query+"dryRun=All", c.typ, body)); got != c.want {
			t.Errorf("%s/%s: a dry run answers %s, want %s", c.plural, c.name, got, c.want)
		}
		if got := phase(want(t, a, http.StatusCreated, c.method, collection+query, c.typ, body)); got != c.want {
			t.Errorf("%s/%s: the answer has %s, want %s", c.plural, c.name, got, c.want)
		}
		for _, version := range []string{"v1", "v2"} {
			path := "/apis/status.example.com/" + version + "/namespaces/default/" + c.plural + "/" + c.name
			if got := phase(want(t, a, http.StatusOK, http.MethodGet, path, "", "")); got != c.want {
				t.Errorf("%s: %s, want %s", path, got, c.want)
			}
		}
	}
}
