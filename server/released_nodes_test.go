package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestNodesOfReleases: which service accounts, and tokens for which audiences, each release gives to node agents.
func TestNodesOfReleases(t *testing.T) {
	const accounts = "/api/v1/namespaces/default/serviceaccounts"
	const elsewhere = `serviceaccounts \"app\" is forbidden: audience \"other\" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience`
	for _, c := range []struct {
		flags    []string
		accounts int    // the answer to a get of a service account
		reason   string // of a refusal
		other    int    // the answer to a request of a token for an audience that the pod does not name
		mirror   string // what a mirror pod with a driver is refused for; "" for nothing
	}{
		{[]string{"--emulated-version=1.32"}, 403, "can only create tokens for individual service accounts", 201, ""},
		{[]string{"--emulated-version=1.33"}, 403, "not allowed to get service accounts", 403, "csidrivers (via CSI volumes)"},
		{[]string{"--emulated-version=1.33", "--feature-gates=ServiceAccountNodeAudienceRestriction=false"}, 403, "not allowed to get service accounts", 201, "csidrivers (via CSI volumes)"},
		{[]string{"--emulated-version=1.34"}, 200, "", 403, "csidrivers (via CSI volumes)"},
		{[]string{"--emulated-version=1.36"}, 200, "", 403, "csidrivers (via CSI volumes)"},
	} {
		t.Run(fmt.Sprint(c.flags), func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t, servertest.Complete(t, c.flags...), func(c *server.Config) {
				c.Admission.Enable = append(c.Admission.Enable, "NodeRestriction")
			})
			as := func(method, path, body string) (int, string) {
				w := s.Do(method, path, body, "Impersonate-User", "system:node:n1", "Impersonate-Group", "system:nodes")
				return w.Code, w.Body.String()
			}
			s.Must("POST", "/api/v1/nodes", `{"metadata":{"name":"n1"}}`)
			for _, name := range []string{"app", "stranger"} {
				s.Must("POST", accounts, `{"metadata":{"name":"`+name+`"}}`)
			}
			s.Must("POST", "/apis/storage.k8s.io/v1/csidrivers", `{"metadata":{"name":"d.example.com"},"spec":{"volumeLifecycleModes":["Ephemeral"],"tokenRequests":[{"audience":"vault"}]}}`)
			pod := s.Must("POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"app","nodeName":"n1","containers":[{"name":"c","image":"i"}],"volumes":[
				{"name":"t","projected":{"sources":[{"serviceAccountToken":{"path":"t","audience":"named"}}]}},{"name":"d","csi":{"driver":"d.example.com"}}]}}`)
			_, uid, _ := strings.Cut(string(pod), `"uid":"`)
			uid, _, _ = strings.Cut(uid, `"`)
			if code, body := as("GET", accounts+"/app", ""); code != c.accounts || !strings.Contains(body, c.reason) {
				t.Errorf("get: %d %s, want %d %s", code, body, c.accounts, c.reason)
			}
			for _, path := range []string{accounts + "/stranger", accounts} {
				if code, body := as("GET", path, ""); code != http.StatusForbidden {
					t.Errorf("get of %s: %d %s", path, code, body)
				}
			}
			for audience, want := range map[string]int{"named": 201, "vault": 201, "other": c.other} {
				code, body := as("POST", accounts+"/app/token", `{"spec":{"audiences":["`+audience+`"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p","uid":"`+uid+`"}}}`)
				if code != want || code == http.StatusForbidden && !strings.Contains(body, elsewhere) {
					t.Errorf("token for %s: %d %s, want %d", audience, code, body, want)
				}
			}
			mirror := `{"metadata":{"name":"m","annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"$uid","controller":true}]},
				"spec":{"nodeName":"n1","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"d","csi":{"driver":"d.example.com"}}]}}`
			node := string(s.Must("GET", "/api/v1/nodes/n1", ""))
			_, uid, _ = strings.Cut(node, `"uid":"`)
			uid, _, _ = strings.Cut(uid, `"`)
			code, body := as("POST", "/api/v1/namespaces/default/pods", strings.ReplaceAll(mirror, "$uid", uid))
			if (c.mirror != "") != (code == http.StatusForbidden) || !strings.Contains(body, c.mirror) {
				t.Errorf("mirror pod: %d %s, want %q", code, body, c.mirror)
			}
			s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"audience"},"rules":[{"apiGroups":[""],"resources":["other"],"resourceNames":["app"],"verbs":["request-serviceaccounts-token-audience"]}]}`)
			s.Must("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"audience"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"audience"},"subjects":[{"kind":"Group","name":"system:nodes"}]}`)
			pod = s.Must("GET", "/api/v1/namespaces/default/pods/p", "")
			_, uid, _ = strings.Cut(string(pod), `"uid":"`)
			uid, _, _ = strings.Cut(uid, `"`)
			if code, body := as("POST", accounts+"/app/token", `{"spec":{"audiences":["other"],"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p","uid":"`+uid+`"}}}`); code != http.StatusCreated {
				t.Errorf("token for an audience that a role allows: %d %s", code, body)
			}
		})
	}
}
