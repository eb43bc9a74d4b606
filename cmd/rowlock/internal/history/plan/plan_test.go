package plan_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/plan"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
	"github.com/rowlock/rowlock/server/rowlocktest"
)

// shop is a server with a namespace, and a client of it.
type shop struct {
	t   *testing.T
	srv *rowlocktest.Server
	c   *cluster.Client
	all *cluster.Resources
}

func open(t *testing.T, options ...rowlocktest.Option) *shop {
	t.Helper()
	srv := rowlocktest.Start(t, append(options, rowlocktest.Past())...)
	srv.Namespace("shop")
	return as(t, srv, srv.Config())
}

func as(t *testing.T, srv *rowlocktest.Server, cfg *rest.Config) *shop {
	t.Helper()
	c, err := cluster.New(cfg, "shop")
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &shop{t, srv, c, all}
}

func (s *shop) target(name string) cluster.Target {
	s.t.Helper()
	names, err := cluster.ParseNames([]string{name})
	if err != nil {
		s.t.Fatal(err)
	}
	targets, err := names.Targets(s.all, "shop")
	if err != nil || len(targets) != 1 {
		s.t.Fatal(targets, err)
	}
	return targets[0]
}

func (s *shop) do(method, path string, body any) plan.Object {
	s.t.Helper()
	var answer plan.Object
	if err := s.c.Do(s.t.Context(), cluster.Request{Method: method, Path: path, Body: body}, &answer); err != nil {
		s.t.Fatal(err)
	}
	return answer
}

func (s *shop) make(kind, name string, more plan.Object) plan.Object {
	s.t.Helper()
	t := s.target(kind + "/" + name)
	meta := plan.Object{"name": name}
	obj := plan.Object{"apiVersion": t.Resource.APIVersion(), "kind": t.Resource.Kind, "metadata": meta}
	for key, value := range more {
		if key == "labels" || key == "ownerReferences" || key == "finalizers" {
			meta[key] = value
			continue
		}
		obj[key] = value
	}
	return s.do(http.MethodPost, t.Resource.Path("shop", ""), obj)
}

func (s *shop) data(name, value string) {
	s.t.Helper()
	obj := s.do("", s.target("cm/"+name).Path(), nil)
	obj["data"] = plan.Object{"a": value}
	s.do(http.MethodPut, s.target("cm/"+name).Path(), obj)
}

func (s *shop) remove(name string) {
	s.t.Helper()
	s.do(http.MethodDelete, s.target(name).Path(), plan.Object{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "propagationPolicy": "Background"})
}

func (s *shop) now() int64 {
	s.t.Helper()
	at, err := revisions.Now(s.t.Context(), s.c)
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}

func (s *shop) finder() plan.Finder { return plan.Finder{Client: s.c, Resources: s.all} }

// carry executes a plan, and returns the result of each step in a word.
func (s *shop) carry(make func(context.Context, *plan.Plan) error, between func()) map[string]string {
	s.t.Helper()
	p := plan.New()
	if err := make(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
	if _, err := p.DryRun(s.t.Context(), s.c); err != nil {
		s.t.Fatal(err)
	}
	if between != nil {
		between()
	}
	if _, err := p.Apply(s.t.Context(), s.c, func(*plan.Step) {}); err != nil {
		s.t.Fatal(err)
	}
	became := map[string]string{}
	for _, step := range p.Steps {
		word := string(step.Action)
		if step.Conflict() {
			word += " conflict"
		} else if step.Err != nil {
			word += " failed: " + step.Err.Error()
		}
		became[step.Target.String()] = word
	}
	for reason, n := range p.Left {
		became["left: "+reason] = fmt.Sprint(n)
	}
	return became
}

func (s *shop) is(name, value string) {
	s.t.Helper()
	obj := s.do("", s.target("cm/"+name).Path(), nil)
	if got := fmt.Sprint(obj["data"]); got != fmt.Sprint(map[string]any{"a": value}) {
		s.t.Errorf("%s holds %s, want %s", name, got, value)
	}
}

func want(t *testing.T, got, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %q, want %q", key, got[key], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRestore: deleted objects come back, changed ones are changed back, new ones are deleted
// on request, and objects that change meanwhile are left alone.
func TestRestore(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, name := range []string{"same", "gone", "changed", "busy", "again"} {
		s.make("cm", name, plan.Object{"data": plan.Object{"a": "old"}})
	}
	at := s.now()
	s.remove("cm/gone")
	s.remove("cm/again")
	s.data("changed", "new")
	s.data("busy", "new")
	s.make("cm", "extra", nil)
	r := &plan.Restore{Finder: s.finder(), At: at, Namespace: "shop", Types: plan.Everything(s.all)}
	got := s.carry(r.Plan, func() {
		s.data("busy", "newer")
		s.make("cm", "again", plan.Object{"data": plan.Object{"a": "newer"}})
	})
	want(t, got, map[string]string{
		"configmap/gone": "create", "configmap/changed": "change", "configmap/busy": "change conflict", "configmap/again": "create conflict",
		"left: made since (--prune deletes it)": "1",
	})
	s.is("gone", "old")
	s.is("changed", "old")
	s.is("busy", "newer")
	s.is("again", "newer")
	r.Prune = true
	want(t, s.carry(r.Plan, nil), map[string]string{"configmap/busy": "change", "configmap/again": "change", "configmap/extra": "delete"})
	want(t, s.carry(r.Plan, nil), map[string]string{})
}

// TestRestoreSelected: an object that had the labels and lost them was there all the same.
func TestRestoreSelected(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.make("cm", "lost", plan.Object{"labels": plan.Object{"tier": "front"}})
	s.make("cm", "got", plan.Object{})
	s.make("cm", "other", plan.Object{"labels": plan.Object{"tier": "back"}})
	at := s.now()
	for name, labels := range map[string]any{"lost": nil, "got": plan.Object{"tier": "front"}} {
		obj := s.do("", s.target("cm/"+name).Path(), nil)
		obj["metadata"].(plan.Object)["labels"] = labels
		s.do(http.MethodPut, s.target("cm/"+name).Path(), obj)
	}
	s.data("other", "new")
	selector, err := labels.Parse("tier=front")
	if err != nil {
		t.Fatal(err)
	}
	r := &plan.Restore{Finder: s.finder(), At: at, Namespace: "shop", Types: plan.Everything(s.all), Labels: selector, Prune: true}
	want(t, s.carry(r.Plan, nil), map[string]string{"configmap/lost": "change", "configmap/got": "change"})
	s.is("other", "new")
}

// TestRestoreNamespace: a namespace that is gone comes back before what it held, and
// owners before what they own, with their new UIDs.
func TestRestoreNamespace(t *testing.T) {
	t.Parallel()
	s := open(t, rowlocktest.Controllers("garbagecollector", "namespace"))
	owner := s.make("cm", "zz", plan.Object{"data": plan.Object{"a": "1"}})
	s.make("secret", "aa", plan.Object{"ownerReferences": []any{plan.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "name": "zz", "uid": revisions.Text(owner, "uid"),
	}}})
	at := s.now()
	s.do(http.MethodDelete, "/api/v1/namespaces/shop", nil)
	rowlocktest.Eventually(t, func() error {
		if err := s.c.Do(t.Context(), cluster.Request{Path: "/api/v1/namespaces/shop"}, nil); err == nil {
			return fmt.Errorf("the namespace is there still")
		}
		return nil
	})
	r := &plan.Restore{Finder: s.finder(), At: at, Namespace: "shop", Types: plan.Everything(s.all)}
	got := s.carry(r.Plan, nil)
	want(t, got, map[string]string{"namespace/shop": "create", "configmap/zz": "create", "secret/aa": "create"})
	now := s.do("", s.target("cm/zz").Path(), nil)
	if refs := fmt.Sprint(s.do("", s.target("secret/aa").Path(), nil)["metadata"].(plan.Object)["ownerReferences"]); !strings.Contains(refs, revisions.Text(now, "uid")) {
		t.Errorf("%s does not name %s", refs, revisions.Text(now, "uid"))
	}
}

// TestUndelete: an object comes back with what it owned, however deep, and owner references
// name the new ones; what lives on is adopted.
func TestUndelete(t *testing.T) {
	t.Parallel()
	s := open(t)
	ref := func(obj plan.Object) []any {
		return []any{plan.Object{"apiVersion": "v1", "kind": "ConfigMap", "name": revisions.Text(obj, "name"), "uid": revisions.Text(obj, "uid")}}
	}
	top := s.make("cm", "top", plan.Object{"data": plan.Object{"a": "1"}})
	middle := s.make("cm", "middle", plan.Object{"ownerReferences": ref(top), "data": plan.Object{"a": "2"}})
	s.make("secret", "leaf", plan.Object{"ownerReferences": ref(middle)})
	s.make("secret", "alive", plan.Object{"ownerReferences": ref(top)})
	s.make("secret", "other", plan.Object{})
	s.remove("cm/top")
	s.remove("cm/middle")
	s.remove("secret/leaf")
	u := &plan.Undelete{Finder: s.finder(), Dependents: true}
	got := s.carry(func(ctx context.Context, p *plan.Plan) error { return u.Plan(ctx, p, s.target("cm/top")) }, nil)
	want(t, got, map[string]string{"configmap/top": "create", "configmap/middle": "create", "secret/leaf": "create", "secret/alive": "adopt"})
	s.is("top", "1")
	for child, parent := range map[string]string{"cm/middle": "cm/top", "secret/leaf": "cm/middle", "secret/alive": "cm/top"} {
		refs := fmt.Sprint(s.do("", s.target(child).Path(), nil)["metadata"].(plan.Object)["ownerReferences"])
		uid := revisions.Text(s.do("", s.target(parent).Path(), nil), "uid")
		if !strings.Contains(refs, uid) {
			t.Errorf("%s names %s as its owner, want %s", child, refs, uid)
		}
	}
	if err := u.Plan(t.Context(), plan.New(), s.target("cm/top")); err == nil || !strings.Contains(err.Error(), "is there") {
		t.Errorf("a live object is to be brought back: %v", err)
	}
	if err := u.Plan(t.Context(), plan.New(), s.target("cm/never")); err == nil {
		t.Error("what never was is to be brought back")
	}
}

// TestUndeleteJob: a restored Job lacks the labels and selector that the server derives from its UID.
func TestUndeleteJob(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.make("job", "once", plan.Object{"spec": plan.Object{"template": plan.Object{"spec": plan.Object{
		"restartPolicy": "Never", "containers": []any{plan.Object{"name": "a", "image": "a"}},
	}}}})
	s.remove("job/once")
	u := &plan.Undelete{Finder: s.finder()}
	got := s.carry(func(ctx context.Context, p *plan.Plan) error { return u.Plan(ctx, p, s.target("job/once")) }, nil)
	want(t, got, map[string]string{"job.batch/once": "create"})
}

// changed makes a ConfigMap and a Secret, changes the one and deletes the other. It returns a
// time in between.
func (s *shop) changed() (at int64) {
	s.t.Helper()
	s.make("cm", "a", plan.Object{"data": plan.Object{"a": "old"}})
	s.make("secret", "b", plan.Object{})
	at = s.now()
	s.data("a", "new")
	s.remove("secret/b")
	return at
}

// TestRights: a plan is made and executed with the user's rights, and names missing ones.
func TestRights(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.changed()
	s.srv.Allow("ann", "shop", rowlocktest.Rule("", []string{"configmaps"}, "get", "list"))
	ann := as(t, s.srv, s.srv.As("ann"))
	p := plan.New()
	r := &plan.Restore{Finder: ann.finder(), At: at, Namespace: "shop", Types: plan.Everything(s.all)}
	if err := r.Plan(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	ok, err := p.DryRun(t.Context(), ann.c)
	if err != nil || ok || len(p.Steps) != 1 || !revisions.Denied(p.Steps[0].Err) {
		t.Errorf("%v %v %+v: want one step that is denied", ok, err, p.Steps)
	}
	if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "secrets are left out") {
		t.Errorf("secrets are not mentioned:\n%s", notes)
	}
	u := &plan.Undelete{Finder: ann.finder()}
	if err := u.Plan(t.Context(), plan.New(), s.target("secret/b")); err == nil || !strings.Contains(err.Error(), `cannot`) {
		t.Errorf("a Secret's past was shown: %v", err)
	}
	s.is("a", "new")
}
