package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestNodesAndRoles has two node agents try what they may and may not, and the
// default policy mended by a restart.
func TestNodesAndRoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &access{dir: dir, users: harness.NewAuthority(t, "users"), clients: map[*tls.Certificate]*http.Client{}, roots: x509.NewCertPool()}
	ca := filepath.Join(dir, "users.crt")
	if err := os.WriteFile(ca, a.users.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	a.s = harness.StartT(t, harness.Options{Args: []string{
		"--client-ca-file", ca, "--enable-admission-plugins", "NodeRestriction",
		"--controllers", "*,clusterrole-aggregation-controller,root-ca-cert-publisher",
	}})
	own, err := os.ReadFile(filepath.Join(a.s.DataDir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	a.roots.AppendCertsFromPEM(own)
	t.Run("node agents", func(t *testing.T) { agents(t, a) })
	t.Run("aggregated roles", func(t *testing.T) { aggregated(t, a) })
	t.Run("root authority", func(t *testing.T) {
		var m struct{ Data map[string]string }
		a.until(t, "/api/v1/namespaces/default/configmaps/kube-root-ca.crt", &m, func() bool { return m.Data["ca.crt"] == string(own) })
	})
	t.Run("default policy", func(t *testing.T) { mended(t, a) })
}

// step is a request of a user, and how it must end.
type step struct {
	by           *tls.Certificate // nil: the administrator
	method, path string
	body         string
	code         int
	text         string // in the answer
}

func (a *access) walk(t *testing.T, steps []step) {
	t.Helper()
	for _, s := range steps {
		c := call{method: s.method, path: s.path, body: s.body, cert: s.by}
		if s.by == nil {
			c.token = harness.AdminToken
		}
		if s.method == http.MethodPatch {
			c.contentType = "application/merge-patch+json"
		}
		if code, body := a.do(t, c); code != s.code || !strings.Contains(body, s.text) {
			t.Errorf("%s %s: %d, want %d and %q: %s", s.method, s.path, code, s.code, s.text, body)
		}
	}
}

// until asks as administrator until the answer is as wanted.
func (a *access) until(t *testing.T, path string, into any, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		code, body := a.do(t, call{path: path, token: harness.AdminToken})
		if code == http.StatusOK {
			if err := json.Unmarshal([]byte(body), into); err != nil {
				t.Fatal(err)
			}
			if ok() {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func agents(t *testing.T, a *access) {
	n1, n2 := a.users.Client(t, "system:node:n1", "system:nodes"), a.users.Client(t, "system:node:n2", "system:nodes")
	nameOnly := a.users.Client(t, "system:node:n1")
	const (
		pods, secret = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/secrets/s"
		leases       = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
		csiNodes     = "/apis/storage.k8s.io/v1/csinodes"
		account      = "/api/v1/namespaces/default/serviceaccounts/robot"
		unrelated    = "no relationship found between node"
	)
	meta := func(name, rest string) string { return fmt.Sprintf(`{"metadata":{"name":%q}%s}`, name, rest) }
	a.walk(t, []step{
		{n1, "POST", "/api/v1/nodes", meta("n2", ""), 403, `node \"n1\" is not allowed to modify node \"n2\"`},
		{n1, "POST", "/api/v1/nodes", `{"metadata":{"name":"n1","labels":{"node-restriction.kubernetes.io/x":""}}}`, 403, "not allowed to set the following labels"},
		{n1, "POST", "/api/v1/nodes", meta("n1", ""), 201, ""},
		{n2, "POST", "/api/v1/nodes", meta("n2", ""), 201, ""},
		{nameOnly, "GET", "/api/v1/nodes/n1", "", 403, ""},
		{n1, "GET", "/api/v1/nodes/n1", "", 200, ""},
		{n1, "GET", "/api/v1/nodes/n2", "", 403, "only its own Node object"},
		{n1, "PATCH", "/api/v1/nodes/n1", `{"spec":{"taints":null}}`, 403, "is not allowed to modify taints"},
		{n1, "PATCH", "/api/v1/nodes/n1/status", `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, 200, ""},
		{n1, "POST", leases, meta("n2", ""), 403, "same name as the requesting node"},
		{n1, "POST", leases, meta("n1", `,"spec":{"holderIdentity":"n1","leaseDurationSeconds":40}`), 201, ""},
		{n1, "PATCH", leases + "/n1", `{"spec":{"holderIdentity":"n1"}}`, 200, ""},
		{n2, "GET", leases + "/n1", "", 403, ""},
		{n1, "POST", csiNodes, meta("n1", `,"spec":{"drivers":[]}`), 201, ""},
		{n2, "DELETE", csiNodes + "/n1", "", 403, ""},
		{nil, "POST", "/api/v1/namespaces/default/serviceaccounts", meta("robot", ""), 201, ""},
		{nil, "POST", "/api/v1/namespaces/default/secrets", meta("s", `,"stringData":{"k":"v"}`), 201, ""},
		{n1, "GET", secret, "", 403, unrelated},
		{nil, "POST", pods, meta("p", `,"spec":{"nodeName":"n1","serviceAccountName":"robot","containers":[{"name":"c","image":"i","envFrom":[{"secretRef":{"name":"s"}}]}]}`), 201, ""},
		{n1, "GET", secret, "", 200, ""},
		{n2, "GET", secret, "", 403, unrelated},
		{nameOnly, "GET", secret, "", 403, ""},
		{n1, "PUT", secret, meta("s", ""), 403, "can only read resources of this type"},
		{n1, "GET", "/api/v1/namespaces/default/secrets", "", 403, ""},
		{n1, "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", "", 200, `"name":"p"`},
		{n1, "GET", "/api/v1/pods", "", 403, ""},
		{n2, "GET", pods + "/p", "", 403, unrelated},
		{n1, "PATCH", pods + "/p/status", `{"status":{"phase":"Running"}}`, 200, `"Running"`},
		{n1, "PATCH", pods + "/p/status", `{"metadata":{"labels":{"a":"b"}}}`, 403, "cannot update labels through pod status"},
		{n2, "PATCH", pods + "/p/status", `{"status":{"phase":"Failed"}}`, 403, "spec.nodeName set to itself"},
		{n2, "POST", pods + "/p/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`, 403, "can only evict pods"},
		{n2, "DELETE", pods + "/p", "", 403, "can only delete pods"},
		{n1, "POST", pods, meta("own", `,"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}`), 403, "can only create mirror pods"},
		{n1, "DELETE", "/api/v1/nodes/n1", "", 403, ""},
	})
	var pod, node struct{ Metadata struct{ UID string } }
	a.until(t, pods+"/p", &pod, func() bool { return true })
	a.until(t, "/api/v1/nodes/n1", &node, func() bool { return true })
	bound := func(uid string) string {
		return fmt.Sprintf(`{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p","uid":%q}}}`, uid)
	}
	mirror := fmt.Sprintf(`{"metadata":{"name":"static-n1","annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":%q,"controller":true}]},`+
		`"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}]}}`, node.Metadata.UID)
	a.walk(t, []step{
		{n1, "POST", account + "/token", `{}`, 403, "not bound to a pod"},
		{n1, "POST", account + "/token", bound("other"), 403, "does not match the UID in record"},
		{n1, "POST", account + "/token", bound(pod.Metadata.UID), 201, `"token"`},
		{n2, "POST", account + "/token", bound(pod.Metadata.UID), 403, unrelated},
		{n1, "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", bound(pod.Metadata.UID), 403, unrelated},
		{n2, "POST", pods, mirror, 403, "can only create pods with spec.nodeName set to itself"},
		{n1, "POST", pods, mirror, 201, ""},
		{n1, "DELETE", pods + "/p?gracePeriodSeconds=0", "", 200, ""},
		{n1, "GET", secret, "", 403, unrelated},
		{n1, "POST", account + "/token", bound(pod.Metadata.UID), 403, unrelated},
	})
}

func aggregated(t *testing.T, a *access) {
	var role struct {
		Rules []struct{ Resources []string }
	}
	a.until(t, rbacPath+"/clusterroles/admin", &role, func() bool {
		return strings.Contains(fmt.Sprint(role.Rules), "rolebindings") && strings.Contains(fmt.Sprint(role.Rules), "pods")
	})
	jane := a.users.Client(t, "jane")
	a.walk(t, []step{
		{nil, "POST", rbacPath + "/namespaces/default/rolebindings", `{"metadata":{"name":"jane"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"jane"}]}`, 201, ""},
		{jane, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"of-jane"}}`, 201, ""},
		{jane, "GET", "/api/v1/namespaces/default/endpoints", "", 200, ""},
		{jane, "POST", "/api/v1/namespaces/default/endpoints", `{"metadata":{"name":"of-jane"}}`, 403, ""},
		{nil, "POST", rbacPath + "/clusterroles", `{"metadata":{"name":"endpoints-too","labels":{"rbac.authorization.k8s.io/aggregate-to-edit":"true"}},"rules":[{"apiGroups":[""],"resources":["endpoints"],"verbs":["create"]}]}`, 201, ""},
	})
	deadline := time.Now().Add(patience)
	for {
		code, body := a.do(t, call{method: "POST", path: "/api/v1/namespaces/default/endpoints", body: `{"metadata":{"name":"of-jane"}}`, cert: jane})
		if code == http.StatusCreated {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("what a new role adds does not arrive: %d %s", code, body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// mended damages the default policy and starts the server again.
func mended(t *testing.T, a *access) {
	const discovery, basic, monitoring = rbacPath + "/clusterroles/system:discovery", rbacPath + "/clusterrolebindings/system:basic-user", rbacPath + "/clusterroles/system:monitoring"
	a.walk(t, []step{
		{nil, "PATCH", discovery, `{"rules":[{"verbs":["get"],"nonResourceURLs":["/mine"]}]}`, 200, ""},
		{nil, "PATCH", basic, `{"subjects":null,"metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"false"}}}`, 200, ""},
		{nil, "DELETE", monitoring, "", 200, ""},
	})
	if err := a.s.Stop(); err != nil {
		t.Fatal(err)
	}
	again, err := a.s.Again(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Kill)
	a.s = again
	a.walk(t, []step{
		{nil, "GET", discovery, "", 200, "/mine"},
		{nil, "GET", discovery, "", 200, "/openapi/*"},
		{nil, "GET", monitoring, "", 200, "/metrics/slis"},
		{nil, "GET", basic, "", 200, `"name":"system:basic-user"`},
	})
	if _, body := a.do(t, call{path: basic, token: harness.AdminToken}); strings.Contains(body, `"subjects"`) {
		t.Errorf("what was to be left alone was not: %s", body)
	}
}
