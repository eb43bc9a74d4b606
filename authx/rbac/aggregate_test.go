package rbac_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
				a := resourceName("get core " + resource)
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

// counted counts the labels that a selector looks at.
type counted struct {
	labels.Selector
	n *int
}

func (c counted) Matches(set labels.Labels) bool {
	*c.n++
	return c.Selector.Matches(set)
}

// TestChangesOfParts: after a change of one role, the roles that are no parts of aggregated ones are not looked at.
func TestChangesOfParts(t *testing.T) {
	r := rbac.New()
	looked := 0
	for name, from := range map[string][]string{"admin": {"admin", "edit"}, "edit": {"edit", "view"}, "view": {"view"}} {
		c := gathering(name, name, from...)
		for i := range c.Gathers {
			c.Gathers[i] = counted{c.Gathers[i], &looked}
		}
		r.SetClusterRole(c)
	}
	for i := range 1000 {
		r.SetClusterRole(part(fmt.Sprint("other-", i), "", rule("get core things")))
	}
	for i := range 10 {
		looked = 0
		r.SetClusterRole(part("a", "view", rule(fmt.Sprint("get core pods", i))))
		if rules, ok := r.OfRole(rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"}, ""); !ok || len(rules) != 1 || rules[0].Resources[0] != fmt.Sprint("pods", i) {
			t.Errorf("the rules of admin are %v", rules)
		}
		if looked > 20 {
			t.Fatalf("the labels of %d roles were looked at", looked)
		}
	}
}

// TestGatheredAtRandom: whatever roles change, an aggregated role has the rules of its parts, in order of their names.
func TestGatheredAtRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r, have := rbac.New(), map[string]rbac.ClusterRole{}
	var gather func(c rbac.ClusterRole, seen map[string]bool) (rules []rbacv1.PolicyRule)
	gather = func(c rbac.ClusterRole, seen map[string]bool) (rules []rbacv1.PolicyRule) {
		if len(c.Rules) > 0 || len(c.Gathers) == 0 {
			return c.Rules
		}
		for _, name := range slices.Sorted(maps.Keys(have)) {
			selected := slices.ContainsFunc(c.Gathers, func(s labels.Selector) bool { return s.Matches(have[name].Labels) })
			if selected && !seen[name] {
				seen[name] = true
				rules = append(rules, gather(have[name], seen)...)
			}
		}
		return rules
	}
	label := func() string { return string(rune('a' + random.IntN(4))) }
	for i := range 2000 {
		name := fmt.Sprint("role-", random.IntN(8))
		switch random.IntN(4) {
		case 0:
			delete(have, name)
			r.DeleteClusterRole(name)
		case 1:
			have[name] = gathering(name, label(), label(), label())
			r.SetClusterRole(have[name])
		default:
			have[name] = part(name, label(), rule(fmt.Sprint("get core pods", i)))
			r.SetClusterRole(have[name])
		}
		for n := range 8 {
			name := fmt.Sprint("role-", n)
			c, there := have[name]
			got, ok := r.OfRole(rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, "")
			if want := gather(c, map[string]bool{name: true}); ok != there || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("after %d changes %s has the rules %v, want %v", i, name, got, want)
			}
		}
	}
}
