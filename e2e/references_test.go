package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	policiesPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	bindingsPath = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	policyWriter = `{"apiGroups":["admissionregistration.k8s.io"],"resources":["validatingadmissionpolicies","validatingadmissionpolicybindings"],"verbs":["create","update","patch","get"]},
		{"apiGroups":[""],"resources":["configmaps"],"verbs":["create"]}`
)

// teller returns a policy whose message contains its parameters.
func teller(name, kind string) string {
	if kind != "" {
		kind = fmt.Sprintf(`"paramKind":{"apiVersion":"v1","kind":%q},`, kind)
	}
	message := `"'it is ' + string(has(params.data) ? params.data['key'] : '')"`
	if kind == "" {
		message = `"'nothing'"`
	}
	return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%q},"spec":{%s
		"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},
		"validations":[{"expression":"!object.metadata.name.startsWith('ask')","messageExpression":%s}]}}`, name, kind, message)
}

func pointer(name, policy, ref string) string {
	if ref != "" {
		ref = `,"paramRef":` + ref
	}
	return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":%q},"spec":{"policyName":%q,"validationActions":["Deny"]%s}}`, name, policy, ref)
}

// TestReferences: a user that may write policies and bindings, and nothing else, learns nothing of Secrets
// through them, whatever form the write has.
func TestReferences(t *testing.T) {
	t.Parallel()
	a := startAuthorization(t)
	a.namespace(t, "refs")
	a.admin(t, "POST", "/api/v1/namespaces/refs/secrets", `{"metadata":{"name":"s"},"data":{"key":"aHVudGVyMg=="}}`)
	for user, more := range map[string]string{
		"writer": "", "lister": `,{"apiGroups":[""],"resources":["secrets"],"verbs":["list","watch"]}`,
		"namer":  `,{"apiGroups":[""],"resources":["secrets"],"resourceNames":["s"],"verbs":["get"]}`,
		"getter": `,{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`,
		"reader": `,{"apiGroups":["*"],"resources":["*"],"verbs":["get","list"]}`,
	} {
		a.grant(t, "", user, `[`+policyWriter+more+`]`)
	}
	a.admin(t, "POST", policiesPath, teller("secrets", "Secret"))
	named, selected := `{"name":"s","namespace":"refs","parameterNotFoundAction":"Deny"}`, `{"selector":{},"namespace":"refs","parameterNotFoundAction":"Deny"}`
	// write tries each form of a write that gives an object what it had not.
	write := func(user, path, without, with, patch string, want int) {
		t.Helper()
		whole := func(name, text string) string { return fmt.Sprintf(text, name) }
		a.admin(t, "POST", path, whole("old", without))
		for _, c := range []call{
			{method: "POST", path: path, body: whole("new", with)},
			{method: "POST", path: path + "?dryRun=All", body: whole("newer", with)},
			{method: "PATCH", path: path + "/applied?fieldManager=x", body: whole("applied", with), contentType: "application/apply-patch+yaml"},
			{method: "PATCH", path: path + "/old?fieldManager=x&force=true", body: whole("old", with), contentType: "application/apply-patch+yaml"},
			{method: "PATCH", path: path + "/old", body: patch, contentType: "application/merge-patch+json"},
			{method: "PATCH", path: path + "/old", body: patch, contentType: "application/strategic-merge-patch+json"},
		} {
			c.token, c.headers = harness.AdminToken, http.Header{"Impersonate-User": {user}}
			code, body := a.do(t, c)
			if code >= 200 && code < 300 != (want == 0) || want != 0 && code != want {
				t.Errorf("%s %s %s %s: %d %s", user, c.method, c.path, c.contentType, code, body)
			}
		}
		for _, name := range []string{"old", "new", "applied"} {
			a.do(t, call{method: "DELETE", path: path + "/" + name, token: harness.AdminToken})
		}
	}
	policy := func(user, kind string, want int) {
		t.Helper()
		write(user, policiesPath, strings.ReplaceAll(teller("NAME", ""), "NAME", "%[1]s"), strings.ReplaceAll(teller("NAME", kind), "NAME", "%[1]s"),
			fmt.Sprintf(`{"spec":{"paramKind":{"apiVersion":"v1","kind":%q}}}`, kind), want)
	}
	binding := func(user, policy, ref string, want int) {
		t.Helper()
		write(user, bindingsPath, strings.ReplaceAll(pointer("NAME", policy, ""), "NAME", "%[1]s"), strings.ReplaceAll(pointer("NAME", policy, ref), "NAME", "%[1]s"), `{"spec":{"paramRef":`+ref+`}}`, want)
	}
	const no, yes = http.StatusUnprocessableEntity, 0
	for _, user := range []string{"writer", "lister", "namer"} {
		policy(user, "Secret", no)
	}
	policy("getter", "Secret", yes)
	policy("getter", "Nosuch", no)
	policy("reader", "Nosuch", yes)
	for user, want := range map[string]int{"writer": no, "lister": no, "namer": yes, "getter": yes} {
		binding(user, "secrets", named, want)
	}
	for user, want := range map[string]int{"writer": no, "lister": yes, "namer": no, "getter": no, "reader": yes} {
		binding(user, "secrets", selected, want)
	}
	binding("getter", "missing", named, no)
	binding("reader", "missing", named, yes)
	// There was something to reveal.
	if code, body := a.as(t, "getter", "POST", bindingsPath, pointer("told", "secrets", named)); code != http.StatusCreated {
		t.Fatalf("a binding: %d %s", code, body)
	}
	if code, body := a.as(t, "getter", "POST", "/api/v1/namespaces/refs/configmaps", `{"metadata":{"name":"ask"}}`); code != http.StatusUnprocessableEntity || !strings.Contains(body, "it is ") {
		t.Errorf("the message of the policy: %d %s", code, body)
	}
}

// TestStatusMakesNothing: no form of a write of a status makes the object.
func TestStatusMakesNothing(t *testing.T) {
	t.Parallel()
	a := startAuthorization(t)
	for path, kind := range map[string]string{
		"/api/v1/namespaces/default/services/none/status": "Service", "/api/v1/namespaces/default/pods/none/status": "Pod", "/api/v1/persistentvolumes/none/status": "PersistentVolume",
	} {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":"none"},"spec":{"ports":[{"port":80}]}}`, kind)
		for _, c := range []call{
			{method: "PUT", path: path, body: body}, {method: "PATCH", path: path, body: body, contentType: "application/merge-patch+json"},
			{method: "PATCH", path: path + "?fieldManager=x&force=true", body: body, contentType: "application/apply-patch+yaml"},
		} {
			c.token = harness.AdminToken
			if code, answer := a.do(t, c); code != http.StatusNotFound {
				t.Errorf("%s %s %s: %d %s", c.method, c.path, c.contentType, code, answer)
			}
		}
	}
}
