package plan_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/plan"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

// undelete brings objects back, and returns the result for each in a word.
func (s *shop) undelete(u *plan.Undelete, names ...string) map[string]string {
	s.t.Helper()
	u.Finder = s.finder()
	return s.carry(func(ctx context.Context, p *plan.Plan) error {
		for _, name := range names {
			if err := u.Plan(ctx, p, s.target(name)); err != nil {
				return err
			}
		}
		return nil
	}, nil)
}

// letGo takes the finalizers off an object that is being deleted.
func (s *shop) letGo(name string) {
	s.t.Helper()
	r := cluster.Request{Method: http.MethodPatch, Path: s.target(name).Path(), Body: plan.Object{"metadata": plan.Object{"finalizers": nil}}, Type: "application/merge-patch+json"}
	if err := s.c.Do(s.t.Context(), r, nil); err != nil {
		s.t.Fatal(err)
	}
}

// TestUndeleteVolume: a claim and its volume come back so that they find each other again: by
// name, because both have other UIDs, and not as if they had.
func TestUndeleteVolume(t *testing.T) {
	t.Parallel()
	s := open(t)
	size := plan.Object{"storage": "1Gi"}
	claim := s.make("pvc", "data", plan.Object{"spec": plan.Object{"accessModes": []any{"ReadWriteOnce"}, "volumeName": "disk", "storageClassName": "", "resources": plan.Object{"requests": size}}})
	claim["metadata"].(plan.Object)["annotations"] = plan.Object{"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes", "mine": "stays"}
	claim = s.do(http.MethodPut, s.target("pvc/data").Path(), claim)
	s.make("pv", "disk", plan.Object{"spec": plan.Object{
		"capacity": size, "accessModes": []any{"ReadWriteOnce"}, "hostPath": plan.Object{"path": "/x"}, "persistentVolumeReclaimPolicy": "Retain",
		"claimRef": plan.Object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data", "uid": revisions.Text(claim, "uid"), "resourceVersion": "1"},
	}})
	for _, name := range []string{"pvc/data", "pv/disk"} {
		s.remove(name)
		s.letGo(name)
	}
	want(t, s.undelete(&plan.Undelete{}, "pvc/data", "pv/disk"), map[string]string{"persistentvolumeclaim/data": "create", "persistentvolume/disk": "create"})
	volume, back := s.do("", s.target("pv/disk").Path(), nil), s.do("", s.target("pvc/data").Path(), nil)
	ref := volume["spec"].(plan.Object)["claimRef"].(plan.Object)
	if ref["uid"] != nil || ref["resourceVersion"] != nil || ref["name"] != "data" {
		t.Errorf("the volume is kept for %v", ref)
	}
	if notes := fmt.Sprint(back["metadata"].(plan.Object)["annotations"]); notes != "map[mine:stays]" || back["spec"].(plan.Object)["volumeName"] != "disk" {
		t.Errorf("the claim has %s: %v", notes, back["spec"])
	}
}

// TestUndeleteInto: an object whose namespace is gone comes back with it, and finalizers that were
// its own with it, and those of the delete not.
func TestUndeleteInto(t *testing.T) {
	t.Parallel()
	s := open(t, rowlocktest.Controllers("namespace"))
	s.make("cm", "a", plan.Object{"data": plan.Object{"a": "1"}, "finalizers": []any{"example.com/mine"}})
	s.do(http.MethodDelete, s.target("cm/a").Path(), plan.Object{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"})
	s.letGo("cm/a")
	s.do(http.MethodDelete, "/api/v1/namespaces/shop", nil)
	rowlocktest.Eventually(t, func() error {
		if err := s.c.Do(t.Context(), cluster.Request{Path: "/api/v1/namespaces/shop"}, nil); err == nil {
			return fmt.Errorf("the namespace is there still")
		}
		return nil
	})
	want(t, s.undelete(&plan.Undelete{}, "cm/a"), map[string]string{"namespace/shop": "create", "configmap/a": "create"})
	s.is("a", "1")
	if got := fmt.Sprint(s.do("", s.target("cm/a").Path(), nil)["metadata"].(plan.Object)["finalizers"]); got != "[example.com/mine]" {
		t.Errorf("finalizers %s", got)
	}
}

// TestUndeleteDefinition: a definition comes back, and then what it defined, without a schema of
// its lists, by the names that another group has too, in namespaces and outside.
func TestUndeleteDefinition(t *testing.T) {
	t.Parallel()
	s := open(t)
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	define := func(plural, kind, scope string) {
		s.do(http.MethodPost, crds, plan.Object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": plan.Object{"name": plural + ".example.com"},
			"spec": plan.Object{"group": "example.com", "scope": scope, "names": plan.Object{"plural": plural, "kind": kind}, "versions": []any{plan.Object{
				"name": "v1", "served": true, "storage": true, "schema": plan.Object{"openAPIV3Schema": plan.Object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}}},
		})
	}
	served := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			rowlocktest.Eventually(t, func() error { return s.c.Do(t.Context(), cluster.Request{Path: path}, nil) })
		}
		s.all = as(t, s.srv, s.srv.Config()).all
	}
	define("deployments", "Deployment", "Namespaced")
	define("nodes", "Node", "Cluster")
	const inside, outside = "/apis/example.com/v1/namespaces/shop/deployments", "/apis/example.com/v1/nodes"
	served(inside, outside)
	spec := plan.Object{"list": []any{plan.Object{"name": "a"}, plan.Object{"name": "b"}}}
	s.do(http.MethodPost, inside, plan.Object{"apiVersion": "example.com/v1", "kind": "Deployment", "metadata": plan.Object{"name": "web"}, "spec": spec})
	s.do(http.MethodPost, outside, plan.Object{"apiVersion": "example.com/v1", "kind": "Node", "metadata": plan.Object{"name": "web"}, "spec": spec})
	for _, name := range []string{"deployments", "nodes"} {
		s.do(http.MethodDelete, crds+"/"+name+".example.com", nil)
		rowlocktest.Eventually(t, func() error {
			if s.c.Do(t.Context(), cluster.Request{Path: crds + "/" + name + ".example.com"}, nil) == nil {
				return fmt.Errorf("the definition is there still")
			}
			return nil
		})
	}
	want(t, s.undelete(&plan.Undelete{Dependents: true}, "crd/deployments.example.com", "crd/nodes.example.com"), map[string]string{
		"customresourcedefinition.apiextensions.k8s.io/deployments.example.com": "create", "customresourcedefinition.apiextensions.k8s.io/nodes.example.com": "create",
	})
	served(inside, outside)
	want(t, s.undelete(&plan.Undelete{Dependents: true}, "deployments.example.com/web", "nodes.example.com/web"), map[string]string{
		"deployment.example.com/web": "create", "node.example.com/web": "create",
	})
	for _, path := range []string{inside, outside} {
		if got := fmt.Sprint(s.do("", path+"/web", nil)["spec"]); got != fmt.Sprint(map[string]any(spec)) {
			t.Errorf("%s/web came back as %s", path, got)
		}
	}
	err := (&plan.Undelete{Finder: s.finder()}).Plan(t.Context(), plan.New(), s.target("deployments.apps/web"))
	if err == nil || !strings.Contains(err.Error(), "no state of it from before it was deleted is kept") {
		t.Errorf("a Deployment of apps that never was: %v", err)
	}
}

// TestEnded: a plan that is interrupted reports the remaining steps, and the next plan executes
// them.
func TestEnded(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i := range 6 {
		s.make("cm", fmt.Sprint("c", i), plan.Object{"data": plan.Object{"a": "old"}})
	}
	at := s.now()
	for i := range 6 {
		s.remove(fmt.Sprint("cm/c", i))
	}
	restore := &plan.Restore{Finder: s.finder(), At: at, Namespace: "shop", Types: plan.Everything(s.all)}
	p := plan.New()
	if err := restore.Plan(t.Context(), p); err != nil || len(p.Steps) != 6 {
		t.Fatal(len(p.Steps), err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	n := 0
	ok, err := p.Apply(ctx, s.c, func(*plan.Step) {
		if n++; n == 2 {
			end()
		}
	})
	if got := p.Report(); ok || err == nil || got != "2 done, 0 conflicts, 0 failed, 4 not tried.\n" {
		t.Errorf("%v %v: %s", ok, err, got)
	}
	got := s.carry(restore.Plan, nil)
	if len(got) != 4 {
		t.Errorf("what was left is %v", got)
	}
	s.is("c5", "old")
}
