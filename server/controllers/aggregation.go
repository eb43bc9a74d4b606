package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/server/cache"
)

const (
	clusterRolesKey  = "clusterroles.rbac.authorization.k8s.io"
	clusterRolesPath = "/apis/rbac.authorization.k8s.io/v1/clusterroles/"
	// aggregationAgent is the field manager of what this controller writes.
	aggregationAgent = "clusterrole-aggregation-controller"
)

// Aggregation fills the rules of ClusterRoles that have an aggregation rule with
// those of the ClusterRoles which that selects.
//
// A role that was made, or whose rules or selectors somebody changed, may be left alone for
// a while; what its selected roles say later reaches it at once.
type Aggregation struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Retry time.Duration // how soon a failure is tried again; 0: 1 second
	Rest  time.Duration // for how long a role is left alone that others changed
	// Skip are roles that stay as they are, besides; nil: none.
	Skip  func(role *rbacv1.ClusterRole) bool
	Moves Moves  // of the clock
	Queue *Queue // nil: the work is not measured

	roles map[string]*rbacv1.ClusterRole
	calm  settled // those that are left alone
	// imagined are the rules of roles that have none, because they are left alone: for roles
	// that gather from them, and for the authorizer, they have what they would gather.
	imagined map[string][]rbacv1.PolicyRule
}

// OwnRole says whether a role is one that the server itself makes and keeps.
func OwnRole(role *rbacv1.ClusterRole) bool {
	return role.Labels["kubernetes.io/bootstrapping"] == "rbac-defaults" && role.Annotations[rbacv1.AutoUpdateAnnotationKey] == "true"
}

// Run works until ctx ends.
func (a *Aggregation) Run(ctx context.Context) error {
	return again(ctx, a.Retry, func(ctx context.Context) bool {
		a.follow(ctx)
		return false
	})
}

// follow works whenever a role changes. It returns when something failed, or the
// watcher was cut off, so that Run begins again.
func (a *Aggregation) follow(ctx context.Context) {
	watcher, snapshot := a.Cache.WatchNow(clusterRolesKey, cache.Scope{})
	defer watcher.Stop()
	a.roles, a.calm = map[string]*rbacv1.ClusterRole{}, settled{rest: a.Rest}
	snapshot.Ascend("", "", "", func(item *cache.Item) bool {
		a.set(item)
		return true
	})
	var batch []cache.Delivery
	for {
		moved := a.Moves.next()
		if !a.fill(ctx) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-a.calm.next(time.Now()):
			a.calm.due(time.Now())
			continue
		case <-moved:
			a.calm.all()
			continue
		case <-watcher.Ready():
		}
		var err error
		if batch, _, err = watcher.Take(ctx, batch); err != nil {
			return
		}
		for _, d := range batch {
			if d.Type == cache.Deleted {
				delete(a.roles, d.Item().Name)
			} else {
				a.set(d.Item())
			}
		}
	}
}

func (a *Aggregation) set(item *cache.Item) {
	role := &rbacv1.ClusterRole{}
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), role) != nil {
		delete(a.roles, item.Name) // what cannot be read gives nothing
		return
	}
	old := a.roles[item.Name]
	if a.roles[item.Name] = role; role.AggregationRule == nil {
		return
	}
	if a.skips(role) {
		return
	}
	if old == nil || !equality.Semantic.DeepEqual(old.Rules, role.Rules) || !equality.Semantic.DeepEqual(old.AggregationRule, role.AggregationRule) {
		a.calm.wait(objectKey{name: item.Name}, time.Now())
	}
}

// fill writes the rules of all roles whose rules are not what they gather. What it
// writes comes back as a change, and so reaches roles that gather from those.
func (a *Aggregation) fill(ctx context.Context) bool {
	ok := true
	a.imagine()
	for name, role := range a.roles {
		if role.AggregationRule == nil || role.DeletionTimestamp != nil || a.restsNow(role) {
			continue
		}
		rules, err := a.gather(role)
		if err != nil {
			a.Log.Warn("a cluster role has a selector that cannot be read", "name", name, "error", err)
			continue
		}
		if equality.Semantic.DeepEqual(rules, role.Rules) {
			continue
		}
		a.Queue.Add(1)
		ok = a.Queue.Work(func() bool {
			err := a.apply(ctx, role, rules)
			if err == nil {
				role.Rules = rules // what comes back is no news
			}
			if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil { // it comes back as a change
				return true
			}
			a.Log.Warn("cannot fill the rules of a cluster role", "name", name, "error", err)
			return false
		}) && ok
	}
	return ok
}

func (a *Aggregation) skips(role *rbacv1.ClusterRole) bool { return a.Skip != nil && a.Skip(role) }

// restsNow says whether a role is left alone now.
func (a *Aggregation) restsNow(role *rbacv1.ClusterRole) bool {
	return a.calm.in[objectKey{name: role.Name}] || a.skips(role)
}

// imagine finds the rules of roles that are left alone and have none. Each pass takes them
// one step further, and there are not more steps than such roles.
func (a *Aggregation) imagine() {
	a.imagined = map[string][]rbacv1.PolicyRule{}
	var empty []*rbacv1.ClusterRole
	for _, role := range a.roles {
		if role.AggregationRule != nil && len(role.Rules) == 0 && a.restsNow(role) {
			empty = append(empty, role)
		}
	}
	for range empty {
		changed := false
		for _, role := range empty {
			rules, err := a.gather(role)
			if err == nil && len(rules) != len(a.imagined[role.Name]) { // they only ever become more
				a.imagined[role.Name], changed = rules, true
			}
		}
		if !changed {
			return
		}
	}
}

// gather puts the rules of the selected roles together, selector by selector and
// in order of names, each rule once.
func (a *Aggregation) gather(role *rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	rules := []rbacv1.PolicyRule{}
	seen := map[string]bool{}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(a.roles)) {
			from := a.roles[name]
			if name == role.Name || !selector.Matches(labels.Set(from.Labels)) {
				continue
			}
			for _, rule := range append(from.Rules[:len(from.Rules):len(from.Rules)], a.imagined[name]...) {
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

// ruleText is the same for rules that mean the same: with no list and an empty one alike.
func ruleText(rule rbacv1.PolicyRule) (string, error) {
	if rule.Verbs == nil {
		rule.Verbs = []string{}
	}
	text, err := json.Marshal(rule)
	return string(text), err
}

// apply writes the rules of a role that is still the one it was: to apply to one that is
// gone would make it again, for whoever is bound to its name.
func (a *Aggregation) apply(ctx context.Context, role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) error {
	body := map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": map[string]any{"name": role.Name, "uid": role.UID}, "rules": rules,
	}
	path := clusterRolesPath + url.PathEscape(role.Name) + "?force=true&fieldManager=" + aggregationAgent
	return a.API.Call(ctx, aggregationAgent, http.MethodPatch, path, "application/apply-patch+yaml", body, nil)
}
