package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/controllers"
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
		c := newCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rules := func(name string) string {
			var r rbacv1.ClusterRole
			if !c.get(clusterRoles, "", name, &r) {
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
		set := func(r *rbacv1.ClusterRole) { c.set(clusterRoles, "", r.Name, r) }
		set(role("b", "view", "", "nodes", "pods"))
		set(role("a", "view", "", "pods", "secrets"))
		set(role("view", "edit", "view"))
		a := &controllers.Aggregation{API: c, Cache: c.cache, Log: silent}
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
		c.set(clusterRoles, "", "a", nil)
		want("a role goes", "view", "[]", "edit", "[]")
		set(role("a", "view", "", "jobs"))
		want("and comes back", "edit", "[jobs]")
		set(role("edit?dryRun=All", "x", "view"))
		want("a name of which a part is another's", "edit?dryRun=All", "[jobs]")
		broken := role("broken", "x", "view")
		broken.AggregationRule.ClusterRoleSelectors[0].MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
		set(broken)
		want("a selector that cannot be read", "broken", "[]", "view", "[jobs]")
		c.written()
		set(role("a", "view", "", "jobs"))
		synctest.Wait()
		if w := c.written(); len(w) > 0 {
			t.Errorf("nothing changed: %q", w)
		}
		c.mu.Lock()
		c.fail = 2
		c.mu.Unlock()
		set(role("a", "view", "", "cronjobs")) // two roles gather it, and nobody says which comes first
		want("a write fails", "view", "[jobs]", "edit?dryRun=All", "[jobs]")
		time.Sleep(2 * time.Second)
		want("and is tried again", "view", "[cronjobs]", "edit", "[cronjobs]")
	})
}

// Roles that nobody asked to fill are left alone at first, and those of the server itself for
// good. Roles that gather from them have their rules all the same, and what changes in a
// selected role reaches filled ones at once.
func TestAggregationRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		rules := func(step, name, want string) {
			t.Helper()
			synctest.Wait()
			var r rbacv1.ClusterRole
			if !c.get(clusterRoles, "", name, &r) {
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
		set := func(r *rbacv1.ClusterRole) { c.set(clusterRoles, "", r.Name, r) }
		own := role("own", "mine", "part")
		own.Labels["kubernetes.io/bootstrapping"] = "rbac-defaults"
		own.Annotations = map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"}
		set(own)
		set(role("part", "part", "", "pods"))
		set(role("sum", "sum", "mine"))
		a := &controllers.Aggregation{API: c, Cache: c.cache, Log: silent, Rest: 5 * time.Second, Skip: controllers.OwnRole}
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

func TestRootCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var pem atomic.Value
		pem.Store("first")
		want := func(step, namespace, text string) {
			t.Helper()
			synctest.Wait()
			var m struct {
				Metadata metav1.ObjectMeta
				Data     map[string]string
			}
			there := c.get("configmaps", namespace, "kube-root-ca.crt", &m)
			if there != (text != "") || m.Data["ca.crt"] != text || there && m.Metadata.Annotations["kubernetes.io/description"] == "" {
				t.Errorf("%s: %s has %+v", step, namespace, m)
			}
		}
		namespace := func(name string, going bool) {
			m := metav1.ObjectMeta{Name: name}
			if going {
				m.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			c.set("namespaces", "", name, map[string]any{"metadata": m})
		}
		namespace("a", false)
		r := &controllers.RootCA{API: c, Cache: c.cache, Log: silent, PEM: func() ([]byte, error) { return []byte(pem.Load().(string)), nil }}
		go func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		want("a namespace that was there", "a", "first")
		namespace("b", false)
		want("a new namespace", "b", "first")
		namespace("c", true)
		want("a namespace that is going", "c", "")
		c.set("configmaps", "a", "kube-root-ca.crt", nil)
		want("deleted", "a", "first")
		c.set("configmaps", "a", "kube-root-ca.crt", map[string]any{"metadata": metav1.ObjectMeta{Name: "kube-root-ca.crt"}, "data": map[string]string{"ca.crt": "forged", "more": "x"}})
		want("forged", "a", "first")
		c.set("configmaps", "a", "another", map[string]any{"metadata": metav1.ObjectMeta{Name: "another"}})
		namespace("a", false)
		c.mu.Lock()
		c.fail = 1
		c.mu.Unlock()
		namespace("d", false)
		want("a write fails", "d", "")
		time.Sleep(2 * time.Second)
		want("and is tried again", "d", "first")
		synctest.Wait()
		c.written()
		pem.Store("second")
		time.Sleep(2 * time.Minute)
		want("another authority", "b", "second")
		if w := c.written(); len(w) != 3 {
			t.Errorf("three namespaces: %q", w)
		}
	})
}

// Where nobody asked for it, namespaces are left alone at first.
func TestRootCARests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.set("namespaces", "", "before", corev1.Namespace{})
		r := &controllers.RootCA{API: c, Cache: c.cache, Log: silent, Rest: 5 * time.Second, PEM: func() ([]byte, error) { return []byte("authority"), nil }}
		go func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		expect := func(when string, names ...string) {
			t.Helper()
			synctest.Wait()
			for _, name := range []string{"before", "later", "changed"} {
				if there := c.cache.Get("configmaps", name, "kube-root-ca.crt") != nil; there != slices.Contains(names, name) {
					t.Errorf("%s: %s has the authority: %v", when, name, there)
				}
			}
		}
		time.Sleep(3 * time.Second)
		c.set("namespaces", "", "later", corev1.Namespace{})
		time.Sleep(time.Second)
		c.set("namespaces", "", "changed", corev1.Namespace{})
		expect("at first")
		time.Sleep(time.Second)
		expect("after five seconds", "before")
		for range 3 { // what changes again and again is not put off
			time.Sleep(time.Second)
			c.set("namespaces", "", "changed", corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"at": time.Now().String()}}})
		}
		expect("after eight seconds", "before", "later")
		time.Sleep(time.Second)
		expect("after nine seconds", "before", "later", "changed")
	})
}

// TestRootCARefused: a ConfigMap that cannot be written, as one that somebody made
// immutable, keeps no other namespace from its own.
func TestRootCARefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.refuse = "a/configmaps/kube-root-ca.crt"
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		yes := true
		c.set("namespaces", "", "a", corev1.Namespace{})
		c.set("configmaps", "a", "kube-root-ca.crt", corev1.ConfigMap{Immutable: &yes, Data: map[string]string{"ca.crt": "mine"}})
		c.set("namespaces", "", "b", corev1.Namespace{})
		r := &controllers.RootCA{API: c, Cache: c.cache, Log: silent, PEM: func() ([]byte, error) { return []byte("authority"), nil }}
		go func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		for _, namespace := range []string{"b", "later"} {
			c.set("namespaces", "", namespace, corev1.Namespace{})
			synctest.Wait()
			if c.cache.Get("configmaps", namespace, "kube-root-ca.crt") == nil {
				t.Errorf("%s is not told of the authority", namespace)
			}
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := len(c.written()); n > 350 {
			t.Errorf("%d writes in a day", n)
		}
	})
}
