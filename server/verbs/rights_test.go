package verbs_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
)

// only allows some verbs, and remembers what it was asked.
type only struct {
	verbs []string
	asked []string
}

func (o *only) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	o.asked = append(o.asked, strings.Join([]string{a.User.Name, a.Verb, a.APIGroup, a.Resource, a.Subresource, a.Namespace, a.Name}, " "))
	if slices.Contains(o.verbs, a.Verb) {
		return authx.Allow, "", nil
	}
	return authx.NoOpinion, "", nil
}

// sees counts the writes of users that admission sees; the server itself writes at the same time.
type sees struct{ writes atomic.Int32 }

func (*sees) Name() string                        { return "Sees" }
func (*sees) Handles(op admission.Operation) bool { return op == admission.Create }
func (s *sees) Admit(_ context.Context, a *admission.Attributes) error {
	if a.User.Name != "system:apiserver" {
		s.writes.Add(1)
	}
	return nil
}

// TestCreateByUpdateNeedsCreate: a PUT or an apply that makes an object needs the right to
// create it, before anything else of the create is done, also in a dry run.
func TestCreateByUpdateNeedsCreate(t *testing.T) {
	const (
		leases  = "/apis/coordination.k8s.io/v1/namespaces/a/leases"
		roles   = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
		applied = "application/apply-patch+yaml"
	)
	for _, c := range []struct {
		method, url, body, form string
		code                    int // for users that may create
		asks, refusal           string
	}{
		{"PATCH", configmaps + "/x?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`, applied, 201,
			"admin create  configmaps  a x", `configmaps "x" is forbidden: User "admin" cannot create resource "configmaps" in API group "" in the namespace "a"`},
		{"PATCH", configmaps + "/x?fieldManager=m&force=true&dryRun=All", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`, applied, 201,
			"admin create  configmaps  a x", `configmaps "x" is forbidden: User "admin" cannot create resource "configmaps" in API group "" in the namespace "a"`},
		{"PATCH", configmaps + "/x?fieldManager=m", `no object at all`, applied, 400,
			"admin create  configmaps  a x", `configmaps "x" is forbidden: User "admin" cannot create resource "configmaps" in API group "" in the namespace "a"`},
		{"PATCH", roles + "/x?fieldManager=m", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x"}}`, applied, 201,
			"admin create rbac.authorization.k8s.io clusterroles   x", `clusterroles.rbac.authorization.k8s.io "x" is forbidden: User "admin" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope`},
		{"PATCH", "/api/v1/namespaces/x?fieldManager=m", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x"}}`, applied, 201,
			"admin create  namespaces   x", `namespaces "x" is forbidden: User "admin" cannot create resource "namespaces" in API group "" at the cluster scope`},
		{"PUT", leases + "/x", `{"metadata":{"name":"x"}}`, "", 201,
			"admin create coordination.k8s.io leases  a x", `leases.coordination.k8s.io "x" is forbidden: User "admin" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "a"`},
		{"PUT", leases + "/x?dryRun=All", `{"metadata":{"name":"x","resourceVersion":"7"}}`, "", 201,
			"admin create coordination.k8s.io leases  a x", `leases.coordination.k8s.io "x" is forbidden: User "admin" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "a"`},
	} {
		t.Run(c.method+" "+c.url, func(t *testing.T) {
			seen := &sees{}
			f := newFixture(t, seen)
			seen.writes.Store(0)
			before := f.h.Objects.Revision()
			z := &only{verbs: []string{"update", "patch", "get", "list"}}
			f.h.Writes.Authorizer = z
			headers := []string{}
			if c.form != "" {
				headers = append(headers, "Content-Type", c.form)
			}
			got := f.want(403, c.method, c.url, c.body, headers...)
			if m := at(got, "message"); m != c.refusal {
				t.Errorf("refused with %s\nwant %s", m, c.refusal)
			}
			if !slices.Equal(z.asked, []string{c.asks}) {
				t.Errorf("asked %q, want %q", z.asked, c.asks)
			}
			if after := f.h.Objects.Revision(); seen.writes.Load() != 0 || after != before {
				t.Errorf("admission saw %d writes, the store went from %d to %d", seen.writes.Load(), before, after)
			}
			z.verbs = []string{"create"}
			f.want(c.code, c.method, c.url, c.body, headers...)
		})
	}
}

// TestNoCreateByUpdate: if no object could be created, the authorizer is not asked.
func TestNoCreateByUpdate(t *testing.T) {
	f := newFixture(t)
	z := &only{}
	f.h.Writes.Authorizer = z
	f.want(404, "PUT", configmaps+"/x", `{"metadata":{"name":"x"}}`)
	f.want(404, "PATCH", configmaps+"/x", `{"data":{"a":"b"}}`, "Content-Type", merge)
	f.want(409, "PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/x", `{"metadata":{"name":"x","uid":"7"}}`)
	f.want(404, "PATCH", "/api/v1/namespaces/a/pods/x/status?fieldManager=m", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`,
		"Content-Type", "application/apply-patch+yaml")
	if len(z.asked) > 0 {
		t.Errorf("asked %q", z.asked)
	}
}
