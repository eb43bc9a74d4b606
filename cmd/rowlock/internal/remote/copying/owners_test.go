package copying_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote/copying"
)

func asJSON(t *testing.T, object any) string {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestOwners: references have the new UIDs, also of owners that come later, or existed;
// references that are lost, form a cycle, or have no UID are left out and reported.
func TestOwners(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	s.apply(t, "/api/v1/namespaces/a/secrets/there", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"there","namespace":"a"}}`)
	from := source{{"configmaps", []string{
		configMap("child", owned("ConfigMap", "parent", "u-parent")), configMap("parent", ""),
		configMap("adopted", owned("Secret", "there", "u-there")), configMap("orphan", owned("Secret", "gone", "u-gone")),
		configMap("left", owned("ConfigMap", "right", "u-right")), configMap("right", owned("ConfigMap", "left", "u-left")),
		configMap("nameless", owned("ConfigMap", "parent", "")), configMap("strange", owned("ConfigMap", "a/../b", "u-strange")),
		configMap("absurd", `,"ownerReferences":["x",7]`),
	}}}
	r := s.run(t, from, copying.Options{})
	uid := func(path string) string { return field(s.get(t, path), "metadata", "uid") }
	owner := func(name string) string {
		return field(s.get(t, "/api/v1/namespaces/a/configmaps/"+name), "metadata", "ownerReferences", 0, "uid")
	}
	if got := owner("child"); got != uid("/api/v1/namespaces/a/configmaps/parent") {
		t.Errorf("the owner of child is %s", got)
	}
	if got := owner("adopted"); got != uid("/api/v1/namespaces/a/secrets/there") {
		t.Errorf("the owner of adopted is %s", got)
	}
	for _, name := range []string{"orphan", "left", "right", "nameless", "strange", "absurd"} {
		if got := owner(name); got != "<nil>" {
			t.Errorf("the owner of %s is %s", name, got)
		}
		wantDetail(t, r, copying.Noted, "configmaps", name, "without its owner")
	}
	wantTotal(t, "owners", r, 9, 0, 0, 0, 0, 0)
}

// TestOwnersOutOfSight: an owner that the user may not look at, or a server that fails for it
// alone, does not end the run.
func TestOwnersOutOfSight(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	s.Allow("writer", "a", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch", "create"}})
	from := source{{"configmaps", []string{configMap("x", owned("Secret", "hidden", "u-1")), configMap("y", "")}}}
	r, err := copying.Run(t.Context(), client(t, s.end.WithToken("writer", "system:authenticated")), from, copying.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantTotal(t, "an owner that may not be seen", r, 2, 0, 0, 0, 0, 0)
	wantDetail(t, r, copying.Noted, "configmaps", "x", `the target does not show: secrets "hidden" is forbidden`)
}

// TestDeepOwners: a source cannot have everything read as often as it has objects.
func TestDeepOwners(t *testing.T) {
	t.Parallel()
	s := newTarget(t, "a")
	var all []string
	for i := range 130 {
		all = append(all, configMap(fmt.Sprint("c", i), owned("ConfigMap", fmt.Sprint("c", i+1), fmt.Sprint("u-c", i+1))))
	}
	all = append(all, configMap("c130", ""))
	r := s.run(t, source{{"configmaps", all}}, copying.Options{})
	wantTotal(t, "a long chain", r, 131, 0, 0, 0, 0, 0)
	wantDetail(t, r, copying.Noted, "configmaps", "c3", "more than 100 deep")
	if got := field(s.get(t, "/api/v1/namespaces/a/configmaps/c129"), "metadata", "ownerReferences", 0, "name"); got != "c130" {
		t.Errorf("the owner of c129 is %s", got)
	}
}

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// TestDefinitions: custom resources come when their definition is served; in a trial both are
// planned; to who may do neither both are named, and the rest is copied.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	s := newTarget(t)
	from := source{
		{"widgets.example.com", []string{`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a"},"spec":{"n":9007199254740993}}`}},
		{"configmaps", []string{configMap("x", "")}},
		{"customresourcedefinitions.apiextensions.k8s.io", []string{definition}},
		{"namespaces", []string{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`}},
	}
	r := s.run(t, from, copying.Options{DryRun: true})
	wantTotal(t, "a trial", r, 4, 0, 0, 0, 0, 0)
	wantDetail(t, r, copying.Created, "widgets.example.com", "w", "not tried: its definition is not there yet")
	wantDetail(t, r, copying.Created, "configmaps", "x", "not tried: its namespace is not there yet")
	if s.get(t, "/api/v1/namespaces/a") != nil {
		t.Fatal("a trial made a namespace")
	}
	s.Namespace("a")
	s.Allow("writer", "a", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch", "create"}})
	r, err := copying.Run(t.Context(), client(t, s.end.WithToken("writer", "system:authenticated")), from, copying.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantTotal(t, "few rights", r, 1, 0, 0, 0, 0, 3)
	wantDetail(t, r, copying.Noted, "customresourcedefinitions.apiextensions.k8s.io", "widgets.example.com", "does not show whether it is served")
	wantDetail(t, r, copying.Failed, "widgets.example.com", "w", "does not serve")
	wantTotal(t, "all rights", s.run(t, from, copying.Options{}), 2, 0, 2, 0, 0, 0)
	data, err := s.c.Do(t.Context(), remote.Request{Method: http.MethodGet, Path: "/apis/example.com/v1/namespaces/a/widgets/w"})
	if err != nil || field(decoded(t, data), "spec", "n") != "9007199254740993" {
		t.Errorf("the widget is %s, %v", data, err)
	}
}
