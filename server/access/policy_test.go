package access_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
)

// api keeps objects by path, as JSON.
type api struct {
	mu        sync.Mutex
	objects   map[string]map[string]any
	writes    []string // but for objects that were there already
	reads     int
	conflicts int // how many updates are still to be refused
}

func newAPI() *api { return &api{objects: map[string]map[string]any{}} }

func (a *api) Call(_ context.Context, _, method, path, _ string, body, into any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if method != http.MethodGet {
		a.writes = append(a.writes, method+" "+path)
	}
	missing := apierrors.NewNotFound(schema.GroupResource{}, path)
	switch method {
	case http.MethodGet:
		a.reads++
		obj, ok := a.objects[path]
		if !ok {
			return missing
		}
		return convert(obj, into)
	case http.MethodPost:
		obj := map[string]any{}
		if err := convert(body, &obj); err != nil {
			return err
		}
		path += "/" + obj["metadata"].(map[string]any)["name"].(string)
		if a.objects[path] != nil {
			a.writes = a.writes[:len(a.writes)-1]
			return apierrors.NewAlreadyExists(schema.GroupResource{}, path)
		}
		a.objects[path] = obj
	case http.MethodPut:
		if a.conflicts > 0 {
			a.conflicts--
			return apierrors.NewConflict(schema.GroupResource{}, path, fmt.Errorf("again"))
		}
		if a.objects[path] == nil {
			return missing
		}
		obj := map[string]any{}
		if err := convert(body, &obj); err != nil {
			return err
		}
		a.objects[path] = obj
	case http.MethodDelete:
		if a.objects[path] == nil {
			return missing
		}
		delete(a.objects, path)
	}
	return nil
}

func convert(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// change edits an object behind everybody's back.
func (a *api) change(t *testing.T, path string, into kinds.Object, fn func()) {
	t.Helper()
	if err := convert(a.objects[path], into); err != nil {
		t.Fatal(err)
	}
	fn()
	obj := map[string]any{}
	if err := convert(into, &obj); err != nil {
		t.Fatal(err)
	}
	a.objects[path] = obj
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

func TestPolicyIsBroughtBack(t *testing.T) {
	empty := cache.New(kinds.NewCatalogue(builtin.Resources()))
	a := newAPI()
	ensure := func() []string {
		t.Helper()
		policy, err := access.DefaultPolicy(release.Default, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.writes = nil
		if err := policy.Ensure(t.Context(), a, empty); err != nil {
			t.Fatal(err)
		}
		slices.Sort(a.writes)
		return a.writes
	}
	want := func(step string, writes ...string) {
		t.Helper()
		if got := ensure(); !slices.Equal(got, writes) {
			t.Errorf("%s: %q, want %q", step, got, writes)
		}
	}
	first := ensure()
	if len(first) < 100 || a.reads > 0 {
		t.Fatalf("%d objects were made, with %d reads", len(first), a.reads)
	}
	for path, obj := range a.objects {
		m := metav1.PartialObjectMetadata{}
		if err := convert(obj, &m); err != nil || m.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" || m.Annotations["rbac.authorization.kubernetes.io/autoupdate"] != "true" {
			t.Errorf("%s: %v %v %v", path, m.Labels, m.Annotations, err)
		}
	}
	want("nothing to do")

	binding, crb := rbacPath+"clusterrolebindings/system:discovery", &rbacv1.ClusterRoleBinding{}
	discovery, role := rbacPath+"clusterroles/system:discovery", &rbacv1.ClusterRole{}
	a.change(t, discovery, role, func() {
		role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/own"}}}
		role.Labels = map[string]string{"mine": "stays"}
	})
	want("rules taken away", "PUT "+discovery)
	a.change(t, discovery, role, func() {
		text := fmt.Sprint(role.Rules)
		for _, url := range []string{"/own", "/api/*", "/version"} {
			if !strings.Contains(text, url) {
				t.Errorf("the role lacks %s: %s", url, text)
			}
		}
		if role.Labels["mine"] != "stays" || role.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" {
			t.Errorf("labels: %v", role.Labels)
		}
	})
	want("rules of others stay")
	a.change(t, discovery, role, func() { role.Rules = rules("*", "*", "*") })
	want("paths are not covered by resources", "PUT "+discovery)
	a.change(t, discovery, role, func() { role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}} })
	want("rules that cover")

	a.change(t, binding, crb, func() { crb.Subjects = []rbacv1.Subject{{Kind: "User", Name: "mine", APIGroup: rbacv1.GroupName}} })
	want("subjects taken away", "PUT "+binding)
	a.change(t, binding, crb, func() {
		if len(crb.Subjects) != 2 || crb.Subjects[0].Name != "mine" || crb.Subjects[1].Name != "system:authenticated" {
			t.Errorf("subjects: %v", crb.Subjects)
		}
		crb.RoleRef.Name = "view"
	})
	want("another role is bound", "DELETE "+binding, "POST "+rbacPath+"clusterrolebindings")
	delete(a.objects, discovery)
	want("a role was deleted", "POST "+rbacPath+"clusterroles")

	a.change(t, discovery, role, func() {
		role.Rules, role.Labels = nil, nil
		role.Annotations["rbac.authorization.kubernetes.io/autoupdate"] = "false"
	})
	a.change(t, binding, crb, func() {
		crb.Subjects, crb.RoleRef.Name = nil, "view"
		crb.Annotations["rbac.authorization.kubernetes.io/autoupdate"] = "false"
	})
	want("left alone")
	a.change(t, discovery, role, func() { role.Annotations["rbac.authorization.kubernetes.io/autoupdate"] = "true" })
	want("no longer left alone", "PUT "+discovery)

	edit := rbacPath + "clusterroles/edit"
	a.change(t, edit, role, func() {
		role.Rules = rules("get", "", "pods")
		role.AggregationRule.ClusterRoleSelectors[0].MatchLabels = map[string]string{"a": "b"}
	})
	want("selectors taken away", "PUT "+edit)
	a.change(t, edit, role, func() {
		if len(role.AggregationRule.ClusterRoleSelectors) != 2 || len(role.Rules) != 1 {
			t.Errorf("edit: %+v", role)
		}
	})
	want("what is gathered is nobody's business here")

	a.change(t, discovery, role, func() { role.Rules = nil })
	a.conflicts = 2
	want("others write too", "PUT "+discovery, "PUT "+discovery, "PUT "+discovery)
}

// A role that is as it should be costs no request, by what the cache has.
func TestPolicyTrustsTheCache(t *testing.T) {
	l := newLog(t)
	policy, err := access.DefaultPolicy(release.Default, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range policy.ClusterRoles {
		r := &policy.ClusterRoles[i]
		l.apply(l.set(clusterRoles, "", r.Name, r))
	}
	a := newAPI()
	if err := policy.Ensure(t.Context(), a, l.cache); err != nil {
		t.Fatal(err)
	}
	for path := range maps.Keys(a.objects) {
		if strings.HasPrefix(path, rbacPath+"clusterroles/") {
			t.Errorf("%s was made, though it is there", path)
		}
	}
}

// An earlier complete object does not count after a change, nor for the objects of another server.
func TestPolicyLooksAgain(t *testing.T) {
	policy, err := access.DefaultPolicy(release.Default, nil)
	if err != nil {
		t.Fatal(err)
	}
	fill := func(l *log, but func(*rbacv1.ClusterRole)) (writes []string) {
		t.Helper()
		for i := range policy.ClusterRoles {
			r := policy.ClusterRoles[i].DeepCopy()
			but(r)
			l.apply(l.set(clusterRoles, "", r.Name, r))
		}
		a := newAPI()
		if err := policy.Ensure(t.Context(), a, l.cache); err != nil {
			t.Fatal(err)
		}
		for _, w := range a.writes {
			if strings.Contains(w, "/clusterroles") {
				writes = append(writes, w)
			}
		}
		return writes
	}
	poor := func(r *rbacv1.ClusterRole) {
		if r.Name == "system:discovery" {
			r.Rules = nil
		}
	}
	l, want := newLog(t), []string{"POST " + rbacPath + "clusterroles"}
	for name, got := range map[string][]string{
		"whole": fill(l, func(*rbacv1.ClusterRole) {}), "whole again": fill(newLog(t), func(*rbacv1.ClusterRole) {}),
	} {
		if len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := fill(newLog(t), poor); !slices.Equal(got, want) { // the stranger's API has no such role
		t.Errorf("another server lacks rules: %v", got)
	}
	if got := fill(l, poor); !slices.Equal(got, want) {
		t.Errorf("rules were taken away: %v", got)
	}
}

func TestPolicyFailure(t *testing.T) {
	policy, err := access.DefaultPolicy(release.Default, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = policy.Ensure(t.Context(), failing{}, cache.New(kinds.NewCatalogue(builtin.Resources())))
	if err == nil || !strings.Contains(err.Error(), "no database") {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) Call(context.Context, string, string, string, string, any, any) error {
	return apierrors.NewServiceUnavailable("no database")
}

func TestNodeRules(t *testing.T) {
	policy, err := access.DefaultPolicy(release.Default, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(policy.NodeRules()) < 10 {
		t.Errorf("rules of nodes: %v", policy.NodeRules())
	}
	for _, b := range policy.ClusterRoleBindings {
		if b.Name == "system:node" && len(b.Subjects) > 0 {
			t.Errorf("the node role of all users: %v", b.Subjects)
		}
	}
}

// TestPolicyOfGates: a gate brings the roles, rules and bindings of its feature, and no others.
func TestPolicyOfGates(t *testing.T) {
	all := func(on func(string) bool) map[string]string {
		p, err := access.DefaultPolicy(release.Default, on)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, r := range p.ClusterRoles {
			for _, rule := range r.Rules {
				out[r.Name] += fmt.Sprintf("%s %s %s %s\n", rule.Verbs, rule.APIGroups, rule.Resources, rule.NonResourceURLs)
			}
			if r.Annotations["rbac.authorization.kubernetes.io/autoupdate"] != "true" || r.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" {
				t.Errorf("%s is not marked as a default role", r.Name)
			}
		}
		for _, b := range p.ClusterRoleBindings {
			for _, s := range b.Subjects {
				out["binding "+b.Name] += s.Kind + " " + s.Namespace + "/" + s.Name + " " + b.RoleRef.Name + "\n"
			}
		}
		return out
	}
	plain := all(nil)
	controller := func(name string) map[string]string {
		full := "system:controller:" + name
		return map[string]string{full: "", "binding " + full: "ServiceAccount kube-system/" + name + " " + full + "\n"}
	}
	for gate, want := range map[string][]map[string]string{
		"none": {},
		"DynamicResourceAllocation": {controller("resource-claim-controller"), {
			"system:kube-scheduler": "[get list patch update watch] [resource.k8s.io] [resourceclaims/status] []\n[get list patch update watch] [] [pods/finalizers] []\n",
			"system:node":           "[get] [resource.k8s.io] [resourceclaims] []\n[deletecollection] [resource.k8s.io] [resourceslices] []\n",
		}},
		"MultiCIDRServiceAllocator": {controller("service-cidrs-controller"), {
			"system:node-proxier": "[list watch] [networking.k8s.io] [servicecidrs] []\n[list watch] [discovery.k8s.io] [endpointslices] []\n",
		}},
		"ClusterTrustBundle": {controller("kube-apiserver-serving-clustertrustbundle-publisher"), {
			"system:node":                                   "[get list watch] [certificates.k8s.io] [clustertrustbundles] []\n",
			"system:cluster-trust-bundle-discovery":         "[get list watch] [certificates.k8s.io] [clustertrustbundles] []\n",
			"binding system:cluster-trust-bundle-discovery": "Group /system:serviceaccounts system:cluster-trust-bundle-discovery\n",
		}},
		"StorageVersionMigrator": {controller("storage-version-migrator-controller"), {
			"system:controller:storage-version-migrator-controller": "[create list patch watch] [*] [*] []\n",
		}},
		"StorageVersionAPI":                   {},
		"StorageVersionAPI APIServerIdentity": {controller("storage-version-garbage-collector")},
		"SELinuxChangePolicy":                 {controller("selinux-warning-controller")},
		"VolumeAttributesClass":               {controller("volumeattributesclass-protection-controller")},
		"KubeletFineGrainedAuthz":             {{"system:kubelet-api-admin": "[*] [] [nodes/configz nodes/healthz nodes/pods] []\n"}},
		"ComponentFlagz":                      {{"system:monitoring": "]\n[get] [] [] [/flagz]\n"}},
		"ComponentStatusz":                    {{"system:monitoring": "/readyz /readyz/*]\n[get] [] [] [/statusz]\n"}},
	} {
		got := all(func(name string) bool { return slices.Contains(strings.Fields(gate), name) })
		changed := map[string]string{}
		for _, more := range want {
			maps.Copy(changed, more)
		}
		for name, rules := range got {
			part, ok := changed[name]
			if ok != (rules != plain[name]) || !strings.Contains(rules, part) {
				t.Errorf("%s: %s is %q, want %q in it", gate, name, rules, part)
			}
			delete(changed, name)
		}
		for name := range changed {
			t.Errorf("%s: %s is missing", gate, name)
		}
	}
}
