package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestEveryCompileErrorIsReported writes expressions with several mistakes each.
func TestEveryCompileErrorIsReported(t *testing.T) {
	t.Parallel()
	a := newAPI(t, harness.StartT(t, harness.Options{}))
	crd := definition("rules.example.com", "knots", "Knot", "v1", "v2")
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	schema.XPreserveUnknownFields = nil
	if err := json.Unmarshal([]byte(`{"type":"object","x-kubernetes-validations":[{"rule":"self.a1 == self.a2"},{"rule":"self.a3"}],"properties":{
		"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.a4 || self.a5"}],"properties":{
			"size":{"type":"integer","x-kubernetes-validations":[{"rule":"true","messageExpression":"a6 + a7"},{"rule":"self == 'a8' || self == 'a9'"}]}}}}}`), schema); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(crd)
	if err != nil {
		t.Fatal(err)
	}
	answer := string(want(t, a, http.StatusUnprocessableEntity, http.MethodPost, definitionsPath, "application/json", string(body)))
	for _, text := range []string{"'a1'", "'a2'", "'a3'", "'a4'", "'a5'", "'a6'", "'a7'"} {
		if !strings.Contains(answer, text) {
			t.Errorf("a definition: nothing of %s in %s", text, answer)
		}
	}
	if n := strings.Count(answer, "found no matching overload for '_==_'"); n < 2 {
		t.Errorf("a definition: %d comparisons of different types in %s", n, answer)
	}
	const policy = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"knots"},"spec":{
		"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},
		"matchConditions":[{"name":"a","expression":"b1 || b2"},{"name":"b","expression":"b3"}],
		"variables":[{"name":"v","expression":"b4 + b5"},{"name":"w","expression":"variables.b6"}],
		"validations":[{"expression":"b7 && b8","messageExpression":"b9 + c1"},{"expression":"c2"}],
		"auditAnnotations":[{"key":"k","valueExpression":"c3 + c4"},{"key":"l","valueExpression":"c5"}]}}`
	answer = string(want(t, a, http.StatusUnprocessableEntity, http.MethodPost, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "application/json", policy))
	for _, text := range strings.Fields("b1 b2 b3 b4 b5 b6 b7 b8 b9 c1 c2 c3 c4 c5") {
		if !strings.Contains(answer, "'"+text+"'") {
			t.Errorf("a policy: nothing of %s in %s", text, answer)
		}
	}
}
