package rbac

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
)

// maxHeld bounds the bytes of the rules that are listed for a user, about: one role may be bound many times.
const maxHeld = 8 << 20

// Held lists the rules that a user holds in a namespace, "" for the whole cluster, cluster bindings included.
// err names missing roles to which bindings refer, and notes rules beyond maxHeld; the
// rules found are returned all the same.
func (r *Rules) Held(user *authx.Identity, namespace string) ([]rbacv1.PolicyRule, error) {
	rules, _, err := r.held(user, namespace)
	return rules, err
}

// held is Held; whole reports whether the list is complete but for missing roles.
func (r *Rules) held(user *authx.Identity, namespace string) (rules []rbacv1.PolicyRule, whole bool, err error) {
	r.read()
	defer r.mu.RUnlock()
	weight := 0
	visit := func(h *subjectBindings) bool {
		return h.each(func(s *slot, _ *binding) bool {
			if s.role == nil {
				return true
			}
			if weight += s.role.weight; weight > maxHeld {
				return false
			}
			rules = append(rules, s.role.rules...)
			return true
		})
	}
	whole = r.each("", user, visit) && (namespace == "" || r.each(namespace, user, visit))
	problems := r.missing(user, namespace)
	if !whole {
		problems = append(problems, fmt.Sprintf("the rules of the user have more than %d bytes, not all are listed", maxHeld))
	}
	if len(problems) > 0 {
		err = authx.Problems(problems)
	}
	return rules, whole, err
}

// OfRole lists the rules of the role to which a binding in a namespace refers. ok is false if it does not
// exist.
func (r *Rules) OfRole(ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, ok bool) {
	k := key{name: ref.Name}
	if ref.Kind == "Role" {
		k.namespace = namespace
	}
	r.read()
	defer r.mu.RUnlock()
	s := r.slots[k]
	if s == nil || s.role == nil {
		return nil, false
	}
	return s.role.rules, true
}

// RulesFor implements authx.RuleResolver.
func (r *Rules) RulesFor(_ context.Context, user *authx.Identity, namespace string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	rules, whole, err := r.held(user, namespace)
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
	return resources, paths, !whole, err
}
