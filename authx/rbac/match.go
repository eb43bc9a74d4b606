package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
)

// role is the rules of a role, those of paths apart.
type role struct {
	rules     []rbacv1.PolicyRule // all, as written
	resources []rbacv1.PolicyRule
	paths     []rbacv1.PolicyRule
}

func newRole(rules []rbacv1.PolicyRule) *role {
	r := &role{rules: rules}
	for i := range rules {
		if len(rules[i].NonResourceURLs) > 0 {
			r.paths = append(r.paths, rules[i])
		}
		if len(rules[i].Resources) > 0 {
			r.resources = append(r.resources, rules[i])
		}
	}
	return r
}

func (r *role) allows(a *authx.Attributes) bool {
	if a.ResourceRequest {
		for i := range r.resources {
			if RuleAllows(a, &r.resources[i]) {
				return true
			}
		}
		return false
	}
	for i := range r.paths {
		if RuleAllows(a, &r.paths[i]) {
			return true
		}
	}
	return false
}

// RuleAllows says whether one rule covers a request.
func RuleAllows(a *authx.Attributes, rule *rbacv1.PolicyRule) bool {
	if !a.ResourceRequest {
		return has(rule.Verbs, a.Verb) && pathMatches(rule.NonResourceURLs, a.Path)
	}
	return has(rule.Verbs, a.Verb) && has(rule.APIGroups, a.APIGroup) &&
		resourceMatches(rule.Resources, a.Resource, a.Subresource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

// has says whether a list holds a value, or the wildcard.
func has(list []string, value string) bool {
	for _, v := range list {
		if v == value || v == "*" {
			return true
		}
	}
	return false
}

// resourceMatches compares "pods", "pods/log", "*/log" and "*" with a resource and
// its subresource, without joining them.
func resourceMatches(list []string, resource, sub string) bool {
	for _, v := range list {
		switch {
		case v == "*":
			return true
		case sub == "":
			if v == resource {
				return true
			}
		case len(v) > len(sub) && strings.HasSuffix(v, sub) && v[len(v)-len(sub)-1] == '/':
			if head := v[:len(v)-len(sub)-1]; head == resource || head == "*" {
				return true
			}
		}
	}
	return false
}

// pathMatches compares paths; one that ends in * stands for all that begin with it.
func pathMatches(list []string, path string) bool {
	for _, v := range list {
		if v == "*" || v == path {
			return true
		}
		if head, ok := strings.CutSuffix(v, "*"); ok && strings.HasPrefix(path, strings.TrimRight(head, "*")) {
			return true
		}
	}
	return false
}
