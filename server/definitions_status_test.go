package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestStatusOfDefinitions: a patch of the status alone leaves the schemas as they are, and
// policies see all of the definition.
func TestStatusOfDefinitions(t *testing.T) {
	s := servertest.Start(t, func(c *server.Config) { c.Authenticator = servertest.Everybody{User: servertest.Admin} })
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	d, err := operators.New(1).At(1)
	if err != nil {
		t.Fatal(err)
	}
	s.Must("POST", path, string(d.Body))
	get := func() (spec []byte, whole string) {
		var obj struct{ Spec json.RawMessage }
		text := s.Must("GET", path+"/"+d.Name, "")
		if err := json.Unmarshal(text, &obj); err != nil {
			t.Fatal(err)
		}
		return obj.Spec, string(text)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, whole := get(); strings.Contains(whole, `"InitialNamesAccepted"`) {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("it is not established")
		}
	}
	before, _ := get()
	if len(before) < 16<<10 {
		t.Fatalf("the definition has %d bytes", len(before))
	}
	n := 0
	patch := func() (int, string) {
		n++
		r := s.Do("PATCH", path+"/"+d.Name+"/status", fmt.Sprintf(`{"status":{"conditions":[{"type":"Odd","status":"True","reason":"R%d","message":""}]}}`, n),
			"Content-Type", "application/merge-patch+json", "Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		return r.Code, r.Body.String()
	}
	for range 3 {
		if code, body := patch(); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	after, whole := get()
	if !bytes.Equal(before, after) || !strings.Contains(whole, fmt.Sprintf(`"R%d"`, n)) {
		t.Errorf("after %d patches the spec has %d bytes where it had %d, or the status is another", n, len(after), len(before))
	}
	s.Must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"whole"},
		"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["apiextensions.k8s.io"],"apiVersions":["*"],"operations":["UPDATE"],"resources":["customresourcedefinitions/status"]}]},
		"validations":[{"expression":"[object, oldObject].all(o, o.spec.versions.all(v, v.schema.openAPIV3Schema.properties.size() > 3))","message":"it is not whole"},{"expression":"false","message":"and it was looked at"}]}}`)
	s.Must("POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"whole"},"spec":{"policyName":"whole","validationActions":["Warn"]}}`)
	servertest.Eventually(t, func() bool {
		r := s.Do("PATCH", path+"/"+d.Name+"/status", fmt.Sprintf(`{"status":{"conditions":[{"type":"Odd","status":"True","reason":"W%d","message":""}]}}`, n), "Content-Type", "application/merge-patch+json")
		n++
		warnings := strings.Join(r.Header().Values("Warning"), " ")
		if r.Code != http.StatusOK || strings.Contains(warnings, "not whole") {
			t.Fatal(r.Code, warnings)
		}
		return strings.Contains(warnings, "it was looked at")
	})
	if after, whole := get(); !bytes.Equal(before, after) || !strings.Contains(whole, `"W`) {
		t.Error("what is looked at is stored as something else")
	}
}
