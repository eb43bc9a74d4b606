package rbac

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
)

// Held lists the rules that a user holds in a namespace, "" for the whole cluster,
// cluster bindings included. err names roles that bindings refer to in vain; the
// rules found are returned all the same.
func (r *Rules) Held(user *authx.Identity, namespace string) ([]rbacv1.PolicyRule, error) {
	r.read()
	defer r.mu.RUnlock()
	var rules []rbacv1.PolicyRule
	var missing []string
	visit := func(h *held) bool {
		for _, b := range h.bindings {
			if role := r.roles[b.role]; role != nil {
				rules = append(rules, role.rules...)
			} else {
				missing = append(missing, b.role.missing())
			}
		}
		return true
	}
	r.each("", user, visit)
	if namespace != "" {
		r.each(namespace, user, visit)
	}
	if len(missing) > 0 {
		return rules, authx.Problems(missing)
	}
	return rules, nil
}

// OfRole lists the rules of the role that a binding in a namespace refers to.
// ok is false where there is none.
func (r *Rules) OfRole(ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, ok bool) {
	k := key{name: ref.Name}
	if ref.Kind == "Role" {
		k.namespace = namespace
	}
	r.read()
	defer r.mu.RUnlock()
	role := r.roles[k]
	if role == nil {
		return nil, false
	}
	return role.rules, true
}

// RulesFor implements authx.RuleResolver.
func (r *Rules) RulesFor(_ context.Context, user *authx.Identity, namespace string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	rules, err := r.Held(user, namespace)
	var resources []authx.ResourceRule
	var paths []authx.NonResourceRule
	for i := range rules {
		p := &rules[i]
		if len(p.Resources) > 0 {
			resources = append(resources, authx.ResourceRule{Verbs: p.Verbs, APIGroups: p.APIGroups, Resources: p.Resources, ResourceNames: p.ResourceNames})
		}
		if len(p.NonResourceURLs) > 0 {
			paths = append(paths, authx.NonResourceRule{Verbs: p.Verbs, NonResourceURLs: p.NonResourceURLs})
		}
	}
	return resources, paths, false, err
}
