package aggregation_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/controllers/aggregation"
	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const clusterRoles = "clusterroles.rbac.authorization.k8s.io"

// role makes a cluster role with a label to=<label>, that gathers those of to=<from>.
func role(name, label, from string, resources ...string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"to": label}}}
	if from != "" {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"to": from}}}}
	}
	for _, resource := range resources {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}})
	}
	return r
}

func TestAggregation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rules := func(name string) string {
			var r rbacv1.ClusterRole
			if !c.Get(clusterRoles, "", name, &r) {
				return "none"
			}
			var list []string
			for _, rule := range r.Rules {
				list = append(list, rule.Resources...)
			}
			return fmt.Sprint(list)
		}
		want := func(step string, pairs ...string) {
			t.Helper()
			synctest.Wait()
			for i := 0; i < len(pairs); i += 2 {
				if got := rules(pairs[i]); got != pairs[i+1] {
					t.Errorf("%s: %s has %s, want %s", step, pairs[i], got, pairs[i+1])
				}
			}
		}
		set := func(r *rbacv1.ClusterRole) { c.Set(clusterRoles, "", r.Name, r) }
		set(role("b", "view", "", "nodes", "pods"))
		set(role("a", "view", "", "pods", "secrets"))
		set(role("view", "edit", "view"))
		a := &aggregation.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog}}
		go func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		want("what was there, each rule once, in order of names", "view", "[pods secrets nodes]")
		want("others keep theirs", "a", "[pods secrets]", "b", "[nodes pods]")
		set(role("edit", "admin", "edit", "stale"))
		want("a role that gathers from one that gathers", "edit", "[pods secrets nodes]")
		set(role("loop", "loop", "loop", "own"))
		want("a role does not gather from itself", "loop", "[]")
		set(role("b", "other", ""))
		want("a label changes", "view", "[pods secrets]", "edit", "[pods secrets]")
		c.Set(clusterRoles, "", "a", nil)
		want("a role goes", "view", "[]", "edit", "[]")
		set(role("a", "view", "", "jobs"))
		want("and comes back", "edit", "[jobs]")
		set(role("edit?dryRun=All", "x", "view"))
		want("a name of which a part is another's", "edit?dryRun=All", "[jobs]")
		broken := role("broken", "x", "view")
		broken.AggregationRule.ClusterRoleSelectors[0].MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
		set(broken)
		want("a selector that cannot be read", "broken", "[]", "view", "[jobs]")
		c.Written()
		set(role("a", "view", "", "jobs"))
		synctest.Wait()
		if w := c.Written(); len(w) > 0 {
			t.Errorf("nothing changed: %q", w)
		}
		c.Lock()
		c.Fail = 2
		c.Unlock()
		set(role("a", "view", "", "cronjobs")) // two roles aggregate it, in either order
		want("a write fails", "view", "[jobs]", "edit?dryRun=All", "[jobs]")
		time.Sleep(2 * time.Second)
		want("and is tried again", "view", "[cronjobs]", "edit", "[cronjobs]")
	})
}

// With Base.Debounce set, the controller leaves new roles alone at first, and roles that Skip selects for good. Roles that
// aggregate them get their rules all the same, and a change of a selected role updates filled roles at once.
func TestAggregationRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rules := func(step, name, want string) {
			t.Helper()
			synctest.Wait()
			var r rbacv1.ClusterRole
			if !c.Get(clusterRoles, "", name, &r) {
				t.Fatalf("%s: no %s", step, name)
			}
			var list []string
			for _, rule := range r.Rules {
				list = append(list, rule.Resources...)
			}
			if got := fmt.Sprint(list); got != want {
				t.Errorf("%s: %s has %s, want %s", step, name, got, want)
			}
		}
		set := func(r *rbacv1.ClusterRole) { c.Set(clusterRoles, "", r.Name, r) }
		own := role("own", "mine", "part")
		own.Labels["kubernetes.io/bootstrapping"] = "rbac-defaults"
		own.Annotations = map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}
		set(own)
		set(role("part", "part", "", "pods"))
		set(role("sum", "sum", "mine"))
		a := &aggregation.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: 5 * time.Second}, Skip: aggregation.OwnRole}
		go func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		rules("at first", "sum", "[]")
		time.Sleep(4 * time.Second)
		rules("after a while", "sum", "[]")
		set(role("late", "late", "sum"))
		time.Sleep(time.Second)
		rules("when it has been left alone long enough", "sum", "[pods]")
		rules("one that came later", "late", "[]")
		rules("a role of the server", "own", "[]")
		set(role("part", "part", "", "pods", "jobs"))
		rules("what changes in a selected role", "sum", "[pods jobs]")
		set(role("sum", "sum", "mine", "stale"))
		rules("rules that somebody wrote", "sum", "[stale]")
		time.Sleep(5 * time.Second)
		rules("rules that somebody wrote, later", "sum", "[pods jobs]")
		rules("the one that came later", "late", "[pods jobs]")
		rules("a role of the server, later", "own", "[]")
	})
}

// A role that was there when the server started is filled at once, and not left alone as if it had just been created: a server
// that is restarted often would never fill it.
func TestAggregationAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := controllertest.NewCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		set := func(r *rbacv1.ClusterRole) { c.Set(clusterRoles, "", r.Name, r) }
		set(role("part", "part", "", "pods"))
		set(role("old", "old", "part", "stale"))
		start := c.Cache.Get(clusterRoles, "", "old").Revision
		set(role("new", "new", "part", "stale"))
		a := &aggregation.Controller{Base: reconcile.Base{API: c, Cache: c.Cache, Log: controllertest.DiscardLog, Debounce: 5 * time.Second, Start: start}}
		go func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		for name, want := range map[string]string{"old": "pods", "new": "stale"} {
			var r rbacv1.ClusterRole
			if !c.Get(clusterRoles, "", name, &r) || len(r.Rules) != 1 || r.Rules[0].Resources[0] != want {
				t.Errorf("%s has %v, want %s", name, r.Rules, want)
			}
		}
	})
}
