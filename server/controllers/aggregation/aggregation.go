// Package aggregation fills the rules of ClusterRoles that aggregate others. It writes a role only if its rules differ.
package aggregation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	rolesStorage = "clusterroles.rbac.authorization.k8s.io"
	rolesPath    = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
	rolesAgent   = "clusterrole-aggregation-controller" // field manager of the controller's writes
)

// Controller sets the rules of ClusterRoles with an aggregation rule to those of the ClusterRoles that the
// rule selects.
//
// It leaves a role that a client creates, or whose rules or selectors a client changes, alone until it has
// settled, unless that was before the server started; it applies later changes of the selected roles at once.
type Controller struct {
	reconcile.Base
	// Skip selects further roles that the controller does not fill; nil: none.
	Skip func(role *rbacv1.ClusterRole) bool

	roles    map[string]*rbacv1.ClusterRole
	settling map[string]time.Time // until when roles are left alone
	// imagined are the rules of roles that are still left alone: roles that aggregate them, and the
	// authorizer, use the rules that they would get.
	imagined map[string][]rbacv1.PolicyRule
}

// OwnRole reports whether the server itself creates and keeps a role.
func OwnRole(role *rbacv1.ClusterRole) bool {
	return role.Labels["kubernetes.io/bootstrapping"] == "rbac-defaults" && role.Annotations[rbacv1.AutoUpdateAnnotationKey] == "true"
}

// Run works until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	var all reconcile.Key // all aggregations are compared together
	l := &reconcile.Loop{Base: c.Base, Keys: []reconcile.Key{all}, Failure: "cannot fill the rules of a cluster role"}
	l.Debounce = 0 // which counts for some changes
	l.Begin = func(context.Context) error {
		c.roles, c.settling = map[string]*rbacv1.ClusterRole{}, map[string]time.Time{}
		return nil
	}
	changed := func(set func(*cache.Item)) func(*cache.Item) {
		return func(item *cache.Item) {
			set(item)
			l.Queue.Add(all, 0)
		}
	}
	l.Sources = []reconcile.Source{{Storage: rolesStorage, Seen: changed(c.set), Gone: changed(c.unset)}}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		if key != all {
			return r, c.fill(ctx, c.roles[key.Name])
		}
		r.After = c.settle()
		c.deriveRules()
		for name, role := range c.roles {
			if role.AggregationRule != nil && role.DeletionTimestamp == nil && !c.rests(role) {
				l.Queue.Add(reconcile.Key{Name: name}, 0)
			}
		}
		return r, nil
	}
	return l.Run(ctx)
}

func (c *Controller) unset(item *cache.Item) { delete(c.roles, item.Name) }

func (c *Controller) set(item *cache.Item) {
	role, old := &rbacv1.ClusterRole{}, c.roles[item.Name]
	if !reconcile.Decode(item, role) {
		c.unset(item) // an unreadable role contributes nothing
		return
	}
	c.roles[item.Name] = role
	if role.AggregationRule == nil || c.Debounce == 0 || item.Revision <= c.Start || c.skips(role) || !c.settling[role.Name].IsZero() {
		return
	}
	if old == nil || !equality.Semantic.DeepEqual(old.Rules, role.Rules) || !equality.Semantic.DeepEqual(old.AggregationRule, role.AggregationRule) {
		c.settling[role.Name] = c.Now().Add(c.Debounce)
	}
}

// settle forgets roles that have settled, and returns the time until the next one has; 0 if there is none.
func (c *Controller) settle() (next time.Duration) {
	now := c.Now()
	for name, until := range c.settling {
		left := until.Sub(now)
		if left <= 0 {
			delete(c.settling, name)
		} else if next == 0 || left < next {
			next = left
		}
	}
	return next
}

// fill writes the rules of a role if they differ from those that it aggregates. The watch delivers the write as a change,
// which updates the roles that aggregate this one.
func (c *Controller) fill(ctx context.Context, role *rbacv1.ClusterRole) error {
	if role == nil || role.AggregationRule == nil || c.rests(role) {
		return nil
	}
	rules, err := c.gather(role)
	if err != nil {
		return fmt.Errorf("reading a selector: %w", err)
	}
	if equality.Semantic.DeepEqual(rules, role.Rules) {
		return nil
	}
	// The UID is there because an apply to a deleted role would create it again, for the subjects still bound to its name.
	body := map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": map[string]any{"name": role.Name, "uid": role.UID}, "rules": rules,
	}
	path := rolesPath + url.PathEscape(role.Name) + "?force=true&fieldManager=" + rolesAgent
	if err := c.API.Call(ctx, rolesAgent, http.MethodPatch, path, reconcile.Apply, body, nil); err != nil {
		return err
	}
	role.Rules = rules // so that the event of this write does not start another settling time
	return nil
}

func (c *Controller) skips(role *rbacv1.ClusterRole) bool { return c.Skip != nil && c.Skip(role) }

// rests reports whether a role is left alone now.
func (c *Controller) rests(role *rbacv1.ClusterRole) bool {
	return !c.settling[role.Name].IsZero() || c.skips(role)
}

// deriveRules computes the rules of roles that the controller does not write and that have none. Each pass follows
// one more level of aggregation; there are at most as many levels as such roles.
func (c *Controller) deriveRules() {
	c.imagined = map[string][]rbacv1.PolicyRule{}
	var empty []*rbacv1.ClusterRole
	for _, role := range c.roles {
		if role.AggregationRule != nil && len(role.Rules) == 0 && c.rests(role) {
			empty = append(empty, role)
		}
	}
	for range empty {
		changed := false
		for _, role := range empty {
			rules, err := c.gather(role)
			if err == nil && len(rules) != len(c.imagined[role.Name]) { // they only ever become more
				c.imagined[role.Name], changed = rules, true
			}
		}
		if !changed {
			return
		}
	}
}

// gather puts the rules of the selected roles together, selector by selector and
// in order of names, each rule once.
func (c *Controller) gather(role *rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	rules := []rbacv1.PolicyRule{}
	seen := map[string]bool{}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(c.roles)) {
			from := c.roles[name]
			if name == role.Name || !selector.Matches(labels.Set(from.Labels)) {
				continue
			}
			for _, rule := range append(from.Rules[:len(from.Rules):len(from.Rules)], c.imagined[name]...) {
				text, err := ruleText(rule)
				if err != nil {
					return nil, err
				}
				if !seen[text] {
					seen[text] = true
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules, nil
}

// ruleText returns the same for rules that mean the same: with no list and an empty one alike.
func ruleText(rule rbacv1.PolicyRule) (string, error) {
	if rule.Verbs == nil {
		rule.Verbs = []string{}
	}
	text, err := json.Marshal(rule)
	return string(text), err
}
