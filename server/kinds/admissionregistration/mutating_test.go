package admissionregistration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestMutatingCustomObjects: a policy's change of a custom object is merged by the schema
// of its definition, defaulted, and validated by its rules.
func TestMutatingCustomObjects(t *testing.T) {
	s := servertest.Start(t, servertest.Complete(t, "--runtime-config=api/alpha=true", "--feature-gates=MutatingAdmissionPolicy=true"))
	const group = "/apis/admissionregistration.k8s.io/v1alpha1/"
	post := func(path, body string) (int, string) {
		w := s.Do(http.MethodPost, path, body)
		return w.Code, w.Body.String()
	}
	s.Must(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"beans.x.example.org"},
		"spec":{"group":"x.example.org","scope":"Namespaced","names":{"plural":"beans","kind":"Bean"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
		"spec":{"type":"object","properties":{"n":{"type":"integer","maximum":9},"whole":{"type":"array","items":{"type":"string"}},
		"parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"size":{"type":"integer"},"color":{"type":"string","default":"red"}}}}}}}}}}]}}`)
	policy := func(name, fields string) {
		t.Helper()
		s.Must(http.MethodPost, group+"mutatingadmissionpolicies", `{"apiVersion":"admissionregistration.k8s.io/v1alpha1","kind":"MutatingAdmissionPolicy","metadata":{"name":"`+name+`"},"spec":{"reinvocationPolicy":"Never",
			"matchConstraints":{"objectSelector":{"matchLabels":{"for":"`+name+`"}},"resourceRules":[{"apiGroups":["x.example.org"],"apiVersions":["*"],"operations":["CREATE"],"resources":["beans"]}]},
			"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{spec: Object.spec{`+fields+`}}"}}]}}`)
		s.Must(http.MethodPost, group+"mutatingadmissionpolicybindings", `{"apiVersion":"admissionregistration.k8s.io/v1alpha1","kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"`+name+`"},"spec":{"policyName":"`+name+`"}}`)
	}
	policy("merges", `n: 7, parts: [Object.spec.parts{name: 'a', size: 2}, Object.spec.parts{name: 'b'}]`)
	policy("breaks", `n: 70`)
	policy("replaces", `whole: ['x']`)
	policy("invents", `nope: 1`)
	var code int
	var text string
	servertest.Eventually(t, func() bool { // the definition is served
		code, text = post("/apis/x.example.org/v1/namespaces/default/beans", `{"apiVersion":"x.example.org/v1","kind":"Bean","metadata":{"name":"m","labels":{"for":"merges"}},"spec":{"parts":[{"name":"a","size":1,"color":"blue"}]}}`)
		return code != http.StatusNotFound
	})
	const want = `"spec":{"n":7,"parts":[{"color":"blue","name":"a","size":2},{"color":"red","name":"b"}]}`
	if code != http.StatusCreated || !strings.Contains(text, want) {
		t.Errorf("%d %s, want %s", code, text, want)
	}
	for name, want := range map[string]string{
		"breaks":   "spec.n in body should be less than or equal to 9",
		"replaces": "may not mutate atomic arrays, maps or structs: .spec.whole",
		"invents":  ".spec.nope: field not declared in schema",
	} {
		code, text := post("/apis/x.example.org/v1/namespaces/default/beans", `{"apiVersion":"x.example.org/v1","kind":"Bean","metadata":{"name":"o","labels":{"for":"`+name+`"}},"spec":{"n":1}}`)
		if code < 400 || code >= 500 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", name, code, text, want)
		}
	}
}
