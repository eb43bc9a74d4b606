package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
)

// RuleAllows reports whether one rule covers a request.
func RuleAllows(a *authx.Attributes, rule *rbacv1.PolicyRule) bool {
	if !a.ResourceRequest {
		return has(rule.Verbs, a.Verb) && pathMatches(rule.NonResourceURLs, a.Path)
	}
	return has(rule.Verbs, a.Verb) && has(rule.APIGroups, a.APIGroup) &&
		resourceMatches(rule.Resources, a.Resource, a.Subresource) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.Name))
}

// has reports whether a list holds a value, or the wildcard.
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

// pathMatches compares paths; one that ends in * matches all paths with that prefix.
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
