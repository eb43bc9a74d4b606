package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/servertest"
)

// TestClaimRightsOfReleases: from release 1.36 on, a change of the status of a claim needs rights of its own.
func TestClaimRightsOfReleases(t *testing.T) {
	t.Parallel()
	const (
		claims  = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
		roles   = "/apis/rbac.authorization.k8s.io/v1"
		bound   = `{"status":{"allocation":{"devices":{"results":[{"request":"r","driver":"d.example.com","pool":"p","device":"x"},{"request":"r","driver":"e.example.com","pool":"p","device":"x"}]}}}}`
		first   = `{"status":{"devices":[{"driver":"d.example.com","pool":"p","device":"x"}]}}`
		both    = `{"status":{"devices":[{"driver":"d.example.com","pool":"p","device":"x"},{"driver":"e.example.com","pool":"p","device":"x"}]}}`
		binding = `status.allocation: Forbidden: changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"patch\" permission: resourceclaims.resource.k8s.io is forbidden: User \"bob\" cannot patch resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope`
		driver  = `status.devices: Forbidden: changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[arbitrary-node:patch]\" permission: resourceclaims.resource.k8s.io \"e.example.com\" is forbidden: User \"carl\" cannot arbitrary-node:patch resource \"resourceclaims/driver\" in API group \"resource.k8s.io\" in the namespace \"default\"`
	)
	type step struct {
		user, body, refused string
	}
	for release, steps := range map[string][]step{
		"1.35": {{"bob", bound, ""}, {"bob", both, ""}},
		"1.36": {
			{"bob", bound, binding}, {"carl", bound, ""}, {"bob", `{"status":{"reservedFor":[{"resource":"pods","name":"a","uid":"u"}]}}`, binding},
			{"bob", bound, ""}, // nothing changes
			{"carl", both, driver}, {"carl", first, ""}, {"carl", `{"status":{"devices":null}}`, ""}, {"carl", `{"status":null}`, ""},
		},
	} {
		s := servertest.Start(t, servertest.Complete(t, "--emulated-version="+release))
		s.Must("POST", roles+"/clusterroles", `{"metadata":{"name":"binder"},"rules":[{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims/binding"],"verbs":["patch"]}]}`)
		s.Must("POST", roles+"/clusterrolebindings", `{"metadata":{"name":"binder"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"binder"},"subjects":[{"kind":"User","name":"carl"}]}`)
		for name, rule := range map[string]string{
			"bob": `{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims/status"],"verbs":["patch"]}`,
			"carl": `{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims/status"],"verbs":["patch"]},
				{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims/driver"],"resourceNames":["d.example.com"],"verbs":["arbitrary-node:patch"]}`,
		} {
			s.Must("POST", roles+"/namespaces/default/roles", `{"metadata":{"name":"`+name+`"},"rules":[`+rule+`]}`)
			s.Must("POST", roles+"/namespaces/default/rolebindings", `{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"`+name+`"},"subjects":[{"kind":"User","name":"`+name+`"}]}`)
		}
		s.Must("POST", claims, `{"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"dc.example.com"}}]}}}`)
		for i, c := range steps {
			w := s.Do("PATCH", claims+"/c/status", c.body, "Content-Type", "application/merge-patch+json", "Impersonate-User", c.user)
			if c.refused == "" && w.Code != http.StatusOK || c.refused != "" && (w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), c.refused)) {
				t.Errorf("%s, step %d by %s: %d %s\nwant %s", release, i, c.user, w.Code, w.Body, c.refused)
			}
		}
	}
}
