package e2e

import (
	"encoding/json"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestExplainNamesakes explains custom kinds that are named like built-in ones.
func TestExplainNamesakes(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	a, k := newAPI(t, s), s.Kubectl(t)
	for plural, kind := range map[string]string{"deployments": "Deployment", "services": "Service", "statuses": "Status"} {
		crd := definition("namesake.example.com", plural, kind, "v1")
		v := &crd.Spec.Versions[0]
		v.Schema.OpenAPIV3Schema.XPreserveUnknownFields = nil
		if err := json.Unmarshal([]byte(`{"type":"object","description":"Not what you think.","properties":{
			"spec":{"type":"object","description":"What is wanted.","properties":{"odd":{"type":"string","description":"A field of its own."}}}}}`), v.Schema.OpenAPIV3Schema); err != nil {
			t.Fatal(err)
		}
		defined(t, a, crd)
	}
	for _, args := range [][]string{
		{"explain", "deployments.namesake.example.com"},
		{"explain", "services", "--api-version=namesake.example.com/v1"},
		{"explain", "deployment", "--api-version=namesake.example.com/v1"},
		{"explain", "statuses.namesake.example.com"},
		{"explain", "deployments.namesake.example.com", "--output=plaintext-openapiv2"},
		{"explain", "services", "--api-version=namesake.example.com/v1", "--output=plaintext-openapiv2"},
	} {
		k.Want([]string{"Not what you think.", "What is wanted."}, args...)
	}
	k.Want([]string{"A field of its own."}, "explain", "deployments.spec.odd", "--api-version=namesake.example.com/v1")
	k.Want([]string{"GROUP:", "apps", "strategy"}, "explain", "deployment.spec")
	k.Want([]string{"clusterIP"}, "explain", "service.spec")
	k.Want([]string{"clusterIP"}, "explain", "service.spec", "--output=plaintext-openapiv2")
}
