package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestSelectorsInExpressions: where AuthorizeWithSelectors is off, expressions have no
// selectors of authorizers either. The library of expressions is set up once a process, so that
// this takes a server of its own; package expr tests it with the gate on.
func TestSelectorsInExpressions(t *testing.T) {
	t.Parallel()
	a := startAuthorization(t, "--feature-gates=AuthorizeWithSelectors=false,AuthorizeNodeWithSelectors=false")
	policy := func(name, expression string) (int, string) {
		return a.do(t, call{method: "POST", path: policiesPath, token: harness.AdminToken, body: `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"` + name + `"},"spec":{
			"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},
			"validations":[{"expression":"authorizer.group('').resource('pods')` + expression + `.check('list').allowed()"}]}}`})
	}
	if code, body := policy("without", ""); code != http.StatusCreated {
		t.Errorf("an authorizer without selectors: %d %s", code, body)
	}
	for _, selector := range []string{"fieldSelector", "labelSelector"} {
		code, body := policy(strings.ToLower(selector), "."+selector+"('a=b')")
		if code != http.StatusUnprocessableEntity || !strings.Contains(body, "undeclared reference to '"+selector+"'") {
			t.Errorf("%s: %d %s", selector, code, body)
		}
	}
}
