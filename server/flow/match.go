package flow

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/server/request"
)

const every = "*"

func aboutRequest(rule *flowcontrolv1.PolicyRulesWithSubjects, info *request.Info) bool {
	if info.IsResource {
		return slices.ContainsFunc(rule.ResourceRules, func(r flowcontrolv1.ResourcePolicyRule) bool { return aboutResource(&r, info) })
	}
	return slices.ContainsFunc(rule.NonResourceRules, func(r flowcontrolv1.NonResourcePolicyRule) bool {
		return has(r.Verbs, info.Verb) && aboutPath(r.NonResourceURLs, info.Path)
	})
}

func aboutResource(r *flowcontrolv1.ResourcePolicyRule, info *request.Info) bool {
	if !has(r.Verbs, info.Verb) || !has(r.APIGroups, info.Group) || !hasResource(r.Resources, info) {
		return false
	}
	if info.Namespace == "" {
		return r.ClusterScope
	}
	return has(r.Namespaces, info.Namespace)
}

func hasResource(list []string, info *request.Info) bool {
	if info.Subresource == "" {
		return has(list, info.Resource)
	}
	return slices.ContainsFunc(list, func(s string) bool {
		rest, ok := strings.CutPrefix(s, info.Resource+"/")
		return s == every || ok && rest == info.Subresource
	})
}

// aboutPath matches exact paths, all paths below a path ("/x/*"), and "*".
func aboutPath(list []string, path string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		if p == every || p == path {
			return true
		}
		return strings.HasPrefix(path, strings.TrimSuffix(strings.TrimSuffix(p, every), "/")+"/")
	})
}

func has(list []string, s string) bool {
	return len(list) == 1 && list[0] == every || slices.Contains(list, s)
}
