package access_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
)

func rules(verbs, groups, resources string, names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), ResourceNames: names}}
}

// cluster has jan, who may read pods in namespace a; root, who may do everything; and users with the verbs
// that lift the check, all through roles.
func cluster() *rbac.Rules {
	r := rbac.New()
	grant := func(ns, user string, list []rbacv1.PolicyRule) {
		name := "for-" + user
		r.SetRole("", name, list)
		r.SetBinding(ns, name, rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, []rbacv1.Subject{{Kind: "User", Name: user}})
	}
	const group = rbacv1.GroupName
	grant("a", "jan", rules("get,list", "", "pods"))
	grant("", "root", append(rules("*", "*", "*"), rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}))
	grant("", "reader", rules("get", "*", "*"))
	grant("a", "escalator", rules("escalate", group, "roles"))
	grant("a", "escalator-of-x", rules("escalate", group, "roles", "x"))
	grant("", "cluster-escalator", rules("escalate", group, "clusterroles"))
	grant("a", "binder", rules("bind", group, "roles,clusterroles"))
	grant("", "cluster-binder", rules("bind", group, "clusterroles"))
	grant("a", "binder-of-big", rules("bind", group, "roles", "big"))
	r.SetRole("a", "small", rules("get", "", "pods"))
	r.SetRole("a", "big", rules("*", "*", "*"))
	r.SetRole("", "small", rules("get", "", "pods"))
	r.SetRole("", "big", rules("*", "*", "*"))
	return r
}

func role(name string, list []rbacv1.PolicyRule, change ...func(*rbacv1.Role)) *rbacv1.Role {
	r := &rbacv1.Role{ObjectMeta: meta("a", name), Rules: list}
	for _, f := range change {
		f(r)
	}
	return r
}

func clusterRole(name string, list []rbacv1.PolicyRule, gathers bool) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: meta("", name), Rules: list}
	if gathers {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}}}
	}
	return r
}

func roleBinding(kind, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: meta("a", "x"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}
}

func everywhere(kind, name string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "x"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}}
}

func ofGroup(group, name string) *rbacv1.RoleBinding {
	b := roleBinding("Role", name)
	b.RoleRef.APIGroup = group
	return b
}

func TestEscalation(t *testing.T) {
	const notHeld, needsAll = "is attempting to grant RBAC permissions not currently held", "must have cluster-admin privileges to use the aggregationRule"
	own, more := rules("get", "", "pods"), rules("get,delete", "", "pods")
	collected := func(r *rbacv1.Role) { r.Finalizers = []string{"x"} }
	labelled := func(r *rbacv1.Role) { r.Labels = map[string]string{"x": "y"} }
	for name, c := range map[string]struct {
		user     string
		obj, old kinds.Object // an update where there is an old one
		want     string
	}{
		"a role of what one holds":       {"jan", role("x", own), nil, ""},
		"a role of nothing":              {"jan", role("x", nil), nil, ""},
		"a role of more":                 {"jan", role("x", more), nil, `roles.rbac.authorization.k8s.io "x" is forbidden: user "jan" (groups=["devs"]) ` + notHeld + ":\n" + `{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}`},
		"a role grown":                   {"jan", role("x", more), role("x", own), notHeld},
		"a role reduced but still more":  {"jan", role("x", more), role("x", rules("*", "*", "*")), notHeld},
		"a large role's label":           {"jan", role("x", more, labelled), role("x", more), notHeld},
		"a large role's finalizer":       {"jan", role("x", more, collected), role("x", more), ""},
		"finalizer and growth":           {"jan", role("x", more, collected), role("x", own), notHeld},
		"what is held elsewhere":         {"jan", clusterRole("x", own, false), nil, notHeld},
		"a role by escalate":             {"escalator", role("x", more), nil, ""},
		"an update by escalate":          {"escalator", role("x", more), role("x", own), ""},
		"escalate of one role":           {"escalator-of-x", role("x", more), role("x", own), ""},
		"escalate of another role":       {"escalator-of-x", role("y", more), role("y", own), notHeld},
		"escalate by name on create":     {"escalator-of-x", role("x", more), nil, notHeld}, // a POST has no name yet
		"escalate of roles only":         {"escalator", clusterRole("x", more, false), nil, notHeld},
		"a cluster role by escalate":     {"cluster-escalator", clusterRole("x", more, true), nil, ""},
		"escalate of cluster roles only": {"cluster-escalator", role("x", more), nil, notHeld},
		"gathering":                      {"jan", clusterRole("x", nil, true), nil, needsAll},
		"gathering with some rights":     {"reader", clusterRole("x", nil, true), nil, needsAll},
		"gathering with all":             {"root", clusterRole("x", more, true), nil, ""},
		"gathering begun":                {"reader", clusterRole("x", own, true), clusterRole("x", own, false), needsAll},
		"gathering ended":                {"reader", clusterRole("x", own, false), clusterRole("x", own, true), needsAll},
		"binding a small role":           {"jan", roleBinding("Role", "small"), nil, ""},
		"binding a small cluster role":   {"jan", roleBinding("ClusterRole", "small"), nil, ""},
		"binding a large role":           {"jan", roleBinding("Role", "big"), nil, `rolebindings.rbac.authorization.k8s.io "x" is forbidden: user "jan"`},
		"binding a large cluster role":   {"jan", roleBinding("ClusterRole", "big"), nil, notHeld},
		"a binding's new subject":        {"jan", roleBinding("Role", "big"), &rbacv1.RoleBinding{ObjectMeta: meta("a", "x"), RoleRef: roleBinding("Role", "big").RoleRef, Subjects: []rbacv1.Subject{{Kind: "User", Name: "x"}}}, notHeld},
		"binding everywhere":             {"jan", binding("x", "small", "jan"), nil, notHeld},
		"binding by bind":                {"binder", roleBinding("Role", "big"), nil, ""},
		"binding a cluster role by bind": {"binder", roleBinding("ClusterRole", "big"), nil, ""},
		"bind does not reach everywhere": {"binder", binding("x", "big", "jan"), nil, notHeld},
		"binding everywhere by bind":     {"cluster-binder", binding("x", "big", "jan"), nil, ""},
		"bind of one role":               {"binder-of-big", roleBinding("Role", "big"), nil, ""},
		"bind of another role":           {"binder-of-big", roleBinding("Role", "small"), nil, notHeld},
		"bind of a role of this name":    {"binder-of-big", roleBinding("ClusterRole", "big"), nil, notHeld},
		"bind to what is not there":      {"binder", roleBinding("Role", "none"), nil, ""},
		"a role that is not there":       {"jan", roleBinding("Role", "none"), nil, `rolebindings.rbac.authorization.k8s.io "none" not found`},
		"escalate does not bind":         {"escalator", roleBinding("Role", "big"), nil, notHeld},
		"bind does not escalate":         {"binder", role("x", more), nil, notHeld},
		"a kind that is not there":       {"jan", roleBinding("Gizmo", "g"), nil, `unsupported role reference kind: "Gizmo"`},
		"a role without a name":          {"jan", roleBinding("Role", ""), nil, "Name parameter required."},
		"a cluster role without a name":  {"jan", roleBinding("ClusterRole", ""), nil, "Name parameter required."},
		"a name that cannot be one":      {"jan", roleBinding("Role", "a/b"), nil, `Name parameter invalid: "a/b": may not contain '/'`},
		"a role of no namespace":         {"jan", everywhere("Role", "small"), nil, "Namespace parameter required."},
		"bind of another group":          {"binder", ofGroup("example.com", "big"), nil, notHeld},
	} {
		t.Run(name, func(t *testing.T) {
			held := cluster()
			p := access.Escalation{Rules: held, Follower: follow.New(cache.New(nil), func() {}), Authorizer: held}
			scope := request.NewScope(http.Header{}, time.Now())
			scope.Info = &request.Info{}
			if c.old != nil {
				scope.Info.Name = c.obj.GetName()
			}
			try := func(user *authx.Identity) error {
				return p.Admit(request.With(t.Context(), scope), escalating(t, user, c.obj, c.old))
			}
			err := try(&authx.Identity{Name: c.user, Groups: []string{"devs"}})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if strings.Contains(c.want, "RBAC permissions") && !apierrors.IsForbidden(err) {
				t.Errorf("not forbidden: %v", err)
			}
			if err := try(&authx.Identity{Name: "admin", Groups: []string{authx.GroupMasters}}); err != nil {
				t.Errorf("an administrator: %v", err)
			}
		})
	}
}

// escalating returns a write of obj as the verbs describe it to plugins.
func escalating(t *testing.T, user *authx.Identity, obj, old kinds.Object) *admission.Attributes {
	t.Helper()
	plural := map[string]string{"Role": "roles", "ClusterRole": "clusterroles", "RoleBinding": "rolebindings", "ClusterRoleBinding": "clusterrolebindings"}
	a := &admission.Attributes{Operation: admission.Create, Namespace: obj.GetNamespace(), Name: obj.GetName(), Object: obj, User: user}
	if old != nil {
		a.Operation, a.Old = admission.Update, old
	}
	kind := ""
	switch obj.(type) {
	case *rbacv1.Role:
		kind = "Role"
	case *rbacv1.ClusterRole:
		kind = "ClusterRole"
	case *rbacv1.RoleBinding:
		kind = "RoleBinding"
	case *rbacv1.ClusterRoleBinding:
		kind = "ClusterRoleBinding"
	default:
		t.Fatalf("%T", obj)
	}
	a.Resource = &kinds.Resource{Group: rbacv1.GroupName, Version: "v1", Plural: plural[kind], Kind: kind}
	return a
}
