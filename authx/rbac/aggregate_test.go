package rbac_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/rbac"
)

// gathering returns a role that takes the rules of those labelled "to: LABEL" for any of
// the labels.
func gathering(name, to string, from ...string) rbac.ClusterRole {
	c := rbac.ClusterRole{Name: name, Labels: labels.Set{"to": to}}
	for _, label := range from {
		c.Gathers = append(c.Gathers, labels.SelectorFromSet(labels.Set{"to": label}))
	}
	return c
}

func part(name, to string, rules ...rbacv1.PolicyRule) rbac.ClusterRole {
	return rbac.ClusterRole{Name: name, Labels: labels.Set{"to": to}, Rules: rules}
}

func TestGatheredRules(t *testing.T) {
	r := rbac.New()
	jan := &authx.Identity{Name: "jan"}
	for _, name := range []string{"admin", "edit", "view"} {
		r.SetBinding("ns-"+name, "b", rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, []rbacv1.Subject{{Kind: "User", Name: "jan"}})
	}
	// want lists the roles that allow "get core RESOURCE": "admin,edit: pods".
	want := func(when string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			roles, resource, _ := strings.Cut(line, ": ")
			for _, role := range []string{"admin", "edit", "view"} {
				a := about("get core " + resource)
				a.User, a.Namespace = jan, "ns-"+role
				d, _, _ := r.Authorize(t.Context(), a)
				if yes := strings.Contains(roles, role); yes != (d == authx.Allow) {
					t.Errorf("%s: %s may get %s: %v, want %v", when, role, resource, d, yes)
				}
				rules, _ := r.OfRole(rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, "")
				if yes := strings.Contains(roles, role); yes != strings.Contains(fmt.Sprint(rules), "["+resource+"]") {
					t.Errorf("%s: rules of %s: %v, want %s in it: %v", when, role, rules, resource, yes)
				}
			}
		}
	}
	r.SetClusterRole(gathering("admin", "", "admin"))
	r.SetClusterRole(gathering("edit", "admin", "edit"))
	r.SetClusterRole(part("a-part", "view", rule("get core pods")))
	want("before there is a reader", ": pods")
	r.SetClusterRole(gathering("view", "edit", "view", "edit-too"))
	want("through two steps", "admin,edit,view: pods")
	r.SetClusterRole(part("b-part", "edit", rule("get core secrets")))
	r.SetClusterRole(part("c-part", "admin", rule("get core quotas")))
	want("with parts of each", "admin,edit,view: pods", "admin,edit: secrets", "admin: quotas")
	r.SetClusterRole(part("b-part", "edit-too", rule("get core secrets")))
	want("with a part that moved", "admin,edit,view: secrets")
	r.SetClusterRole(part("a-part", "view", rule("get core services")))
	want("with a part that changed", ": pods", "admin,edit,view: services")
	r.DeleteClusterRole("c-part")
	want("without a part", ": quotas")

	r.SetClusterRole(part("x", "", rule("get core x")))
	r.SetClusterRole(rbac.ClusterRole{Name: "view", Labels: labels.Set{"to": "edit"}, Rules: []rbacv1.PolicyRule{rule("get core written")}, Gathers: gathering("", "", "view").Gathers})
	want("with rules written down", "admin,edit,view: written", ": services")
	r.SetClusterRole(gathering("view", "edit", "view", "edit", "admin")) // in a circle
	want("in a circle", "admin,edit,view: services", ": written", ": x")
	r.DeleteClusterRole("edit")
	want("with a role gone", "view: services")
	r.SetRole("", "view", nil)
	want("after it gathers no more", ": services")
	r.Reset()
	want("after all", ": services")
}
