package rbac_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/rbac"
)

// numbered returns n different short strings.
func numbered(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

func users(names []string) []rbacv1.Subject {
	out := make([]rbacv1.Subject, len(names))
	for i, name := range names {
		out[i] = rbacv1.Subject{Kind: "User", Name: name}
	}
	return out
}

var roleRef = rbacv1.RoleRef{Kind: "Role", Name: "r"}

// TestMemory: roles and bindings take memory in proportion to their own text, not to the product of two lists.
func TestMemory(t *testing.T) {
	takes := func(what string, most uint64, fill func(r *rbac.Rules)) {
		t.Helper()
		var before, after runtime.MemStats
		r := rbac.New()
		runtime.GC()
		runtime.ReadMemStats(&before)
		fill(r)
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := after.HeapAlloc - min(after.HeapAlloc, before.HeapAlloc); n > most {
			t.Errorf("%s: %d bytes", what, n)
		}
		runtime.KeepAlive(r)
	}
	rules := make([]rbacv1.PolicyRule, 1000)
	for i := range rules {
		rules[i] = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: numbered(fmt.Sprint("r", i, "-"), 32), ResourceNames: numbered("n", 32)}
	}
	takes("rules with many resources and names", 2<<20, func(r *rbac.Rules) { r.SetRole("a", "r", rules) })
	wide, names := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: numbered("r", 2000)}}, users(numbered("u", 500))
	takes("a role with many resources, bound for many users", 16<<20, func(r *rbac.Rules) {
		r.SetRole("a", "r", wide)
		for i := range 20 {
			r.SetBinding("a", fmt.Sprint("b", i), roleRef, names)
		}
	})
}

// TestManyBindingsOfOneRole: the cost of a change of a role does not depend on the number of bindings that refer to it. The
// test would take hours if each change compared the bindings for each resource.
func TestManyBindingsOfOneRole(t *testing.T) {
	const bindings = 5000
	r, jan := rbac.New(), users([]string{"jan"})
	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: numbered("r", 2000)}}
	may := func(resource string) bool {
		a := resourceName("get core " + resource)
		a.User, a.Namespace = &authx.Identity{Name: "jan"}, "a"
		d, _, _ := r.Authorize(t.Context(), a)
		return d == authx.Allow
	}
	for i := range bindings {
		r.SetBinding("a", fmt.Sprint("b", i), roleRef, jan)
	}
	for i := range 100 {
		rules[0].Resources[0] = fmt.Sprint("x", i)
		r.SetRole("a", "r", rules)
		if !may(rules[0].Resources[0]) || may(fmt.Sprint("x", i-1)) {
			t.Fatalf("after change %d", i)
		}
	}
	for i := range bindings {
		if !may("r1999") {
			t.Fatalf("after %d bindings were deleted", i)
		}
		r.DeleteBinding("a", fmt.Sprint("b", i))
	}
	if may("r1999") {
		t.Error("no binding is left")
	}
}

// TestChangesOfOthers: a change of a role in one namespace costs decisions in others nothing.
func TestChangesOfOthers(t *testing.T) {
	r, jan := rbac.New(), users([]string{"jan"})
	for _, ns := range []string{"a", "b"} {
		for _, name := range numbered("r", 500) {
			r.SetRole(ns, name, []rbacv1.PolicyRule{rule("get core " + name)})
			r.SetBinding(ns, name, rbacv1.RoleRef{Kind: "Role", Name: name}, jan)
		}
	}
	a := resourceName("get core r499")
	a.User, a.Namespace = &authx.Identity{Name: "jan"}, "a"
	may := func() bool {
		d, _, _ := r.Authorize(t.Context(), a)
		return d == authx.Allow
	}
	if !may() {
		t.Fatal("refused")
	}
	bytes := uint64(0)
	for i := range 100 {
		r.SetRole("b", "r7", []rbacv1.PolicyRule{rule(fmt.Sprint("get core x", i))})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		allowed := may()
		runtime.ReadMemStats(&after)
		if bytes += after.TotalAlloc - before.TotalAlloc; !allowed {
			t.Fatal("refused")
		}
	}
	if bytes > 1<<20 {
		t.Errorf("100 decisions allocate %d bytes", bytes)
	}
	r.SetRole("a", "r499", nil)
	if may() {
		t.Error("a role that changed allows what it did")
	}
}

// TestManyMissingRoles: a refusal names some of the missing roles only, because any client can be refused often.
func TestManyMissingRoles(t *testing.T) {
	r := rbac.New()
	a := resourceName("get core pods")
	a.User, a.Namespace = &authx.Identity{Name: "jan", Groups: []string{"all"}}, "a"
	for i := range 5000 {
		r.SetBinding("a", fmt.Sprint("b", i), rbacv1.RoleRef{Kind: "Role", Name: fmt.Sprint("none", i)}, []rbacv1.Subject{{Kind: "Group", Name: "all"}})
	}
	d, reason, _ := r.Authorize(t.Context(), a)
	if n := strings.Count(reason, " not found"); d != authx.NoOpinion || n < 10 || n > 40 || !strings.HasSuffix(reason, "further roles not found]") {
		t.Errorf("%v: %d roles in %q", d, n, reason)
	}
	if _, err := r.Held(a.User, "a"); err == nil || len(err.Error()) > 4<<10 {
		t.Errorf("the list of rules: %v", err)
	}
	r.SetRole("a", "none4999", []rbacv1.PolicyRule{rule("get core pods")})
	if d, reason, _ := r.Authorize(t.Context(), a); d != authx.Allow {
		t.Errorf("one of the roles exists: %v %q", d, reason)
	}
}

// TestManyRulesHeld: the rules of a role that is bound many times are listed once, and so many at most.
func TestManyRulesHeld(t *testing.T) {
	r, jan := rbac.New(), &authx.Identity{Name: "jan"}
	rules := make([]rbacv1.PolicyRule, 10_000)
	for i := range rules {
		rules[i] = rule(fmt.Sprintf("get core r%d", i))
	}
	r.SetRole("a", "r", rules)
	for i := range 1000 {
		r.SetBinding("a", fmt.Sprint("b", i), roleRef, users([]string{"jan"}))
	}
	if list, err := r.Held(jan, "a"); len(list) != len(rules) || err != nil {
		t.Errorf("%d rules, %v", len(list), err)
	}
	for i := range 20 {
		name := fmt.Sprint("r", i)
		r.SetRole("a", name, rules)
		r.SetBinding("a", name, rbacv1.RoleRef{Kind: "Role", Name: name}, users([]string{"jan"}))
	}
	list, err := r.Held(jan, "a")
	if len(list) < len(rules) || len(list) > 6*len(rules) || err == nil || !strings.Contains(err.Error(), "not all are listed") {
		t.Errorf("%d rules, %v", len(list), err)
	}
	if resources, _, incomplete, err := r.RulesFor(t.Context(), jan, "a"); len(resources) != len(list) || !incomplete || err == nil {
		t.Errorf("%d rules, incomplete: %t, %v", len(resources), incomplete, err)
	}
}
