package server_test

import (
	"context"
	"testing"
)

// TestNoShadows: a definition with the name of a built-in resource gives no other access to its
// objects.
func TestNoShadows(t *testing.T) {
	c := newCluster(t)
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, name := range []string{"clusterrolebindings", "lanterns"} {
		crd := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + name + `.rbac.authorization.k8s.io","annotations":{"api-approved.kubernetes.io":"https://github.com/kubernetes/kubernetes/pull/1"}},
"spec":{"group":"rbac.authorization.k8s.io","scope":"Cluster","names":{"plural":"` + name + `","singular":"x` + name + `","kind":"X` + name + `","listKind":"X` + name + `List"},
"versions":[{"name":"v1alpha9","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}`
		accepted := `"status":{"acceptedNames":{"plural":"clusterrolebindings","singular":"x` + name + `","kind":"X` + name + `","listKind":"X` + name + `List"},"storedVersions":["v1alpha9"],
"conditions":[{"type":"Established","status":"True","reason":"r","message":"m","lastTransitionTime":"2024-01-01T00:00:00Z"}]}`
		c.must("POST", crds, crd+"}")
		w := c.do(context.Background(), "PATCH", crds+"/"+name+".rbac.authorization.k8s.io/status", mergePatch, "{"+accepted+"}", "Master", "yes")
		if w.Code >= 300 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	c.may(right{verb: "create", group: "rbac.authorization.k8s.io", resource: "clusterrolebindings"}, right{verb: "list", group: "rbac.authorization.k8s.io", resource: "clusterrolebindings"})
	before := c.s.Cache.Revision()
	for _, method := range []string{"POST", "GET"} {
		w := c.do(context.Background(), method, "/apis/rbac.authorization.k8s.io/v1alpha9/clusterrolebindings", inJSON,
			`{"apiVersion":"rbac.authorization.k8s.io/v1alpha9","kind":"Xclusterrolebindings","metadata":{"name":"evil"},`+samples["clusterrolebindings.rbac.authorization.k8s.io"]+`}`)
		if w.Code != 404 || len(shownBy(w.Body.String())) > 0 {
			t.Errorf("%s: %d %s", method, w.Code, w.Body)
		}
	}
	if list := describe(c.changes(before)); len(list) > 0 {
		t.Errorf("it did %v", list)
	}
}
