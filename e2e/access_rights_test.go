package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// attackEscalation: a user who may write roles and bindings, but may only read pods, tries to gain more
// rights, with each verb and each form of patch.
func attackEscalation(t *testing.T, a *access) {
	a.namespace(t, "climb")
	write := `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings","clusterroles","clusterrolebindings"],"verbs":["get","list","create","update","patch","delete"]}`
	pods := `{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}`
	a.grant(t, "", "climber", `[`+write+`,`+pods+`]`)
	const ns = rbacPath + "/namespaces/climb"
	secrets := `{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`
	climber := a.users.Client(t, "climber")
	object := func(path, name, rest string) string {
		kind := map[string]string{"roles": "Role", "clusterroles": "ClusterRole", "rolebindings": "RoleBinding", "clusterrolebindings": "ClusterRoleBinding"}[path[strings.LastIndexByte(path, '/')+1:]]
		return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":%q,"metadata":{"name":%q},%s}`, kind, name, rest)
	}
	subjects := func(user string) string {
		return fmt.Sprintf(`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}]`, user)
	}
	ref := func(kind, name string) string {
		return fmt.Sprintf(`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},`, kind, name)
	}
	rules := func(list ...string) string { return `"rules":[` + strings.Join(list, ",") + `]` }
	// Existing objects: harmless roles and bindings, and strong roles with a binding each.
	for _, path := range []string{ns + "/roles", rbacPath + "/clusterroles"} {
		a.admin(t, "POST", path, object(path, "weak", rules(pods)))
		a.admin(t, "POST", path, object(path, "strong", rules(pods, secrets)))
	}
	a.admin(t, "POST", rbacPath+"/clusterroles", object("/clusterroles", "gathers", `"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"gathers":"yes"}}]}`))
	for _, b := range []struct{ path, kind string }{{ns + "/rolebindings", "Role"}, {rbacPath + "/clusterrolebindings", "ClusterRole"}} {
		a.admin(t, "POST", b.path, object(b.path, "weak", ref(b.kind, "weak")+subjects("friend")))
		a.admin(t, "POST", b.path, object(b.path, "strong", ref(b.kind, "strong")+subjects("friend")))
	}
	everything := `{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`
	for _, path := range []string{ns + "/roles", rbacPath + "/clusterroles"} {
		a.climb(t, climber, path, "weak", object, []attempt{
			{"secrets", rules(pods, secrets), false}, {"everything", rules(everything), false}, {"all verbs", rules(`{"apiGroups":[""],"resources":["pods"],"verbs":["*"]}`), false},
			{"subresources", rules(`{"apiGroups":[""],"resources":["pods/*"],"verbs":["get"]}`), false}, {"all groups", rules(`{"apiGroups":["*"],"resources":["pods"],"verbs":["get"]}`), false},
			{"escalate", rules(`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]}`), false},
			{"impersonate", rules(`{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"]}`), false},
			{"one pod", rules(`{"apiGroups":[""],"resources":["pods"],"resourceNames":["p"],"verbs":["get"]}`), true}, {"no rules", `"rules":[]`, true},
		})
	}
	a.climb(t, climber, rbacPath+"/clusterroles", "weak", object, []attempt{
		{"paths", rules(`{"nonResourceURLs":["/metrics"],"verbs":["get"]}`), false},
		{"aggregation", `"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}`, false},
	})
	a.climb(t, climber, rbacPath+"/clusterroles", "gathers", object, []attempt{
		{"more aggregation", `"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"rbac.authorization.k8s.io/aggregate-to-admin":"true"}}]}`, false},
	})
	for _, b := range []struct {
		path  string
		kinds []string
	}{{ns + "/rolebindings", []string{"Role", "ClusterRole"}}, {rbacPath + "/clusterrolebindings", []string{"ClusterRole"}}} {
		for _, kind := range b.kinds {
			a.climb(t, climber, b.path, "", object, []attempt{
				{"bind a strong " + kind, ref(kind, "strong") + subjects("climber"), false}, {"bind a weak " + kind, ref(kind, "weak") + subjects("climber"), true},
			})
		}
		a.climb(t, climber, b.path, "", object, []attempt{{"bind cluster-admin", ref("ClusterRole", "cluster-admin") + subjects("climber"), false}})
		kind := b.kinds[0]
		a.climb(t, climber, b.path, "strong", object, []attempt{{"join a strong binding of a " + kind, ref(kind, "strong") + subjects("climber"), false}})
		a.climb(t, climber, b.path, "weak", object, []attempt{{"join a weak binding of a " + kind, ref(kind, "weak") + subjects("climber"), true}})
		// The role of a binding cannot change.
		for _, c := range changes(b.path, "weak", object, `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},`+subjects("climber")) {
			c.token = harness.AdminToken
			if code, answer := a.do(t, c); code != http.StatusUnprocessableEntity {
				t.Errorf("another roleRef by %s %s: %d %s", c.method, c.contentType, code, answer)
			}
		}
	}
	for _, path := range []string{"/api/v1/secrets", "/api/v1/namespaces/climb/secrets/x", "/metrics"} {
		if code, _ := a.do(t, call{path: path, cert: climber}); code != http.StatusForbidden {
			t.Errorf("after all that %s answers %d", path, code)
		}
	}
	a.bindAndEscalate(t, object, ref, subjects, rules(secrets))
}

// attempt is an object that a user tries to write, and whether the user may.
type attempt struct {
	name, rest string
	may        bool
}

type objectFunc func(path, name, rest string) string

// changes returns all requests that write an existing object.
func changes(path, name string, object objectFunc, rest string) []call {
	whole := object(path, name, rest)
	var operations []string
	for _, field := range []string{"rules", "aggregationRule", "roleRef", "subjects"} {
		if start := strings.Index(rest, `"`+field+`":`); start >= 0 {
			value := rest[start+len(field)+3:]
			for end := len(value); end > 0; end-- { // the longest prefix that is JSON
				if op := fmt.Sprintf(`{"op":"add","path":"/%s","value":%s}`, field, value[:end]); jsonValid(op) {
					operations = append(operations, op)
					break
				}
			}
		}
	}
	at := path + "/" + name
	return []call{
		{method: "PUT", path: at, body: whole},
		{method: "PATCH", path: at, body: `{` + rest + `}`, contentType: "application/merge-patch+json"},
		{method: "PATCH", path: at, body: `{` + rest + `}`, contentType: "application/strategic-merge-patch+json"},
		{method: "PATCH", path: at, body: `[` + strings.Join(operations, ",") + `]`, contentType: "application/json-patch+json"},
		{method: "PATCH", path: at + "?fieldManager=climber&force=true", body: whole, contentType: "application/apply-patch+yaml"},
	}
}

// climb makes attempts on a new object, by POST, PUT and apply, and on the existing one, if name is given.
// Allowed attempts are dry runs.
func (a *access) climb(t *testing.T, cert *certificate, path, name string, object objectFunc, attempts []attempt) {
	t.Helper()
	for _, try := range attempts {
		calls := []call{
			{method: "POST", path: path, body: object(path, "new", try.rest)},
			{method: "PUT", path: path + "/new", body: object(path, "new", try.rest)},
			{method: "PATCH", path: path + "/new?fieldManager=climber", body: object(path, "new", try.rest), contentType: "application/apply-patch+yaml"},
		}
		if name != "" {
			calls = append(calls, changes(path, name, object, try.rest)...)
		}
		for _, c := range calls {
			c.cert = cert
			if try.may {
				separator := "?"
				if strings.Contains(c.path, "?") {
					separator = "&"
				}
				c.path += separator + "dryRun=All"
			}
			code, answer := a.do(t, c)
			if try.may && code/100 != 2 || !try.may && code != http.StatusForbidden {
				t.Errorf("%s on %s by %s %s: %d %s", try.name, path, c.method, c.contentType, code, answer)
			}
		}
	}
}

// bindAndEscalate: the verbs of that name let their holders do it, with the roles
// that they are about and no others.
func (a *access) bindAndEscalate(t *testing.T, object objectFunc, ref func(kind, name string) string, subjects func(string) string, strong string) {
	const ns = rbacPath + "/namespaces/climb"
	a.grant(t, "climb", "binder", `[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["rolebindings"],"verbs":["create"]},
		{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["strong"],"verbs":["bind"]}]`)
	a.grant(t, "climb", "escalator", `[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["create","update","patch"]},
		{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["weak"],"verbs":["escalate"]}]`)
	binder, escalator := a.users.Client(t, "binder"), a.users.Client(t, "escalator")
	for _, tc := range []struct {
		name string
		call call
		want int
	}{
		{"bind the role", call{method: "POST", path: ns + "/rolebindings?dryRun=All", cert: binder, body: object("/rolebindings", "b", ref("Role", "strong")+subjects("binder"))}, 201},
		{"bind another role", call{method: "POST", path: ns + "/rolebindings", cert: binder, body: object("/rolebindings", "b", ref("Role", "weak")+subjects("binder"))}, 403},
		{"bind a cluster role of that name", call{method: "POST", path: ns + "/rolebindings", cert: binder, body: object("/rolebindings", "b", ref("ClusterRole", "strong")+subjects("binder"))}, 403},
		{"escalate the role", call{method: "PUT", path: ns + "/roles/weak?dryRun=All", cert: escalator, body: object("/roles", "weak", strong)}, 200},
		{"escalate another role", call{method: "PUT", path: ns + "/roles/strong", cert: escalator, body: object("/roles", "strong", strong)}, 403},
		{"escalate a new role", call{method: "POST", path: ns + "/roles", cert: escalator, body: object("/roles", "new", strong)}, 403},
		{"bind with escalate", call{method: "POST", path: ns + "/rolebindings", cert: escalator, body: object("/rolebindings", "b", ref("Role", "weak")+subjects("x"))}, 403},
		{"escalate with bind", call{method: "PUT", path: ns + "/roles/strong", cert: binder, body: object("/roles", "strong", strong)}, 403},
	} {
		if code, answer := a.do(t, tc.call); code != tc.want {
			t.Errorf("%s: %d, want %d: %s", tc.name, code, tc.want, answer)
		}
	}
}

// attackPaths: a user who may read ConfigMaps of one namespace, and paths below /healthz, spells other paths
// so that they resemble those.
func attackPaths(t *testing.T, a *access) {
	a.namespace(t, "mine")
	a.namespace(t, "yours")
	const secret = "dW5zcGVha2FibGU=" // unspeakable
	for _, ns := range []string{"mine", "yours"} {
		a.admin(t, "POST", "/api/v1/namespaces/"+ns+"/secrets", `{"metadata":{"name":"s"},"data":{"k":"`+secret+`"}}`)
		a.admin(t, "POST", "/api/v1/namespaces/"+ns+"/configmaps", `{"metadata":{"name":"c"},"data":{"k":"of `+ns+`"}}`)
	}
	a.grant(t, "mine", "reader", `[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]}]`)
	a.grant(t, "", "reader", `[{"nonResourceURLs":["/healthz","/healthz/*","/apis/*"],"verbs":["get"]}]`)
	reader := a.users.Client(t, "reader")
	if code, answer := a.do(t, call{path: "/api/v1/namespaces/mine/configmaps/c", cert: reader}); code != http.StatusOK || !strings.Contains(answer, "of mine") {
		t.Fatalf("%d %s", code, answer)
	}
	var paths []string
	for _, up := range []string{"..", "%2e%2e", "%2E.", ".%2e", "..;", "%252e%252e", "..%00", "%c0%ae%c0%ae"} {
		for _, slash := range []string{"/", "//", "%2f", "%2F", "\\", "%5c", "%252f", "/./"} {
			paths = append(paths,
				"/healthz"+slash+up+slash+"metrics", "/healthz/x"+slash+up+slash+up+slash+"metrics", "/apis"+slash+up+slash+"api/v1/secrets", "/apis"+slash+up+slash+"metrics",
				"/api/v1/namespaces/mine/configmaps"+slash+up+slash+"secrets/s", "/api/v1/namespaces/mine/configmaps/c"+slash+up+slash+up+slash+"secrets/s",
				"/api/v1/namespaces/mine"+slash+up+slash+"yours/secrets/s", "/api/v1/namespaces/mine"+slash+up+slash+"yours/configmaps/c",
				"/healthz"+slash+up+slash+"api/v1/secrets", "/apis/x/"+slash+up+slash+up+slash+"api/v1/namespaces/yours/configmaps/c")
		}
	}
	paths = append(paths,
		"//metrics", "/./metrics", "/metrics/", "//metrics/", "/%6detrics", "/METRICS", "/healthz?/../metrics", "/healthz#/../metrics", "/healthz;/metrics", "/metrics%00", "/metrics%20", "/metrics;x", "/;/metrics",
		"//api/v1/secrets", "/api//v1/secrets", "/api/v1//secrets", "/api/v1/secrets/", "/API/v1/secrets", "/api/V1/secrets", "/api/v1/Secrets", "/%61pi/v1/secrets", "/api/v1/%73ecrets", "/api/v1;x/secrets", "/./api/v1/secrets", "/api/./v1/secrets", "/api/v1/./secrets",
		"/api/v1/namespaces/mine/secrets/s", "/api/v1/namespaces/mine//secrets/s", "/api/v1/namespaces//mine/secrets/s", "/api/v1/namespaces/mine/secrets%2Fs", "/api/v1/namespaces/mine%2Fsecrets%2Fs", "/api/v1/namespaces/mine/configmaps;/secrets/s",
		"/api/v1/watch/secrets", "/api/v1/watch/namespaces/yours/secrets", "/api/v1/watch/namespaces/yours/configmaps", "/api/v1/proxy/namespaces/mine/secrets/s", "/api/v1/namespaces/mine/configmaps/c/secrets/s",
		"/api/v1/namespaces/yours/configmaps/c?namespace=mine", "/api/v1/configmaps?namespace=mine", "/api/v1/configmaps?fieldSelector=metadata.namespace=mine", "/api/v1/secrets?fieldSelector=metadata.name=c", "/api/v1/configmaps/c", "/api/v1/namespaces/mine%00/secrets/s", "/api/v1/namespaces/yours%20/configmaps/c",
		"/apis/v1/secrets", "/apis//v1/secrets", "/apis/ /v1/secrets", "/apis/core/v1/namespaces/mine/secrets/s", "/apis/%20/v1/secrets", "/apis/./api/v1/secrets",
		"/openapi/../metrics", "/debug/pprof/", "/logs", "/healthz/../debug/pprof/")
	for _, path := range paths {
		path = strings.ReplaceAll(path, " ", "%20")
		for _, method := range []string{"GET", "HEAD", "POST"} {
			c := call{method: method, path: path, cert: reader}
			if strings.ContainsAny(path, "\\#") {
				c.path = strings.NewReplacer("\\", "%5C", "#", "%23").Replace(path)
			}
			code, answer := a.do(t, c)
			if strings.Contains(answer, secret) || strings.Contains(answer, "of yours") || strings.Contains(answer, "go_goroutines") || strings.Contains(answer, "goroutine") {
				t.Errorf("%s %s: %d %.300s", method, path, code, answer)
			}
			if code >= 500 || method == "HEAD" && code == http.StatusOK && !strings.HasPrefix(path, "/healthz") {
				t.Errorf("%s %s: %d %.300s", method, path, code, answer)
			}
		}
	}
	for _, name := range []string{"X-Http-Method-Override", "X-Http-Method", "X-Original-Url", "X-Rewrite-Url", "X-Forwarded-Uri"} {
		value := "/api/v1/namespaces/mine/secrets/s"
		if strings.Contains(name, "Method") {
			value = "DELETE"
		}
		code, answer := a.do(t, call{path: "/api/v1/namespaces/mine/configmaps/c", cert: reader, headers: http.Header{name: {value}}})
		if code != http.StatusOK || !strings.Contains(answer, "of mine") {
			t.Errorf("%s: %d %s", name, code, answer)
		}
	}
	// No name holds a slash, not for rules either: an encoded one ends the segment.
	a.grant(t, "mine", "namer", `[{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["x/../c","c/"],"verbs":["get"]}]`)
	for _, path := range []string{"x%2F..%2Fc", "c%2F", "c%2f"} {
		if code, answer := a.do(t, call{path: "/api/v1/namespaces/mine/configmaps/" + path, cert: a.users.Client(t, "namer")}); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
	for _, body := range []string{`{"metadata":{"name":"a/b"}}`, `{"metadata":{"name":".."}}`, `{"metadata":{"name":"%2e%2e"}}`, `{"metadata":{"name":"x","namespace":"yours"}}`} {
		c := call{method: "POST", path: "/api/v1/namespaces/mine/configmaps", body: body, token: harness.AdminToken}
		if code, _ := a.do(t, c); code != http.StatusUnprocessableEntity && code != http.StatusBadRequest {
			t.Errorf("%s: %d", body, code)
		}
	}
	if code, _ := a.do(t, call{method: "POST", path: "/api/v1/namespaces/mine%2F..%2Fyours/configmaps", body: `{"metadata":{"name":"x"}}`, token: harness.AdminToken}); code/100 == 2 {
		t.Errorf("a namespace with slashes: %d", code)
	}
}
