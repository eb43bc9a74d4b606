package flow

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/request"
)

const every = "*"

// matches says whether one of a schema's rules is about a request.
func matches(spec *flowcontrolv1.FlowSchemaSpec, user *authx.Identity, info *request.Info) bool {
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		if !aboutRequest(rule, info) {
			continue
		}
		for j := range rule.Subjects {
			if aboutUser(&rule.Subjects[j], user) {
				return true
			}
		}
	}
	return false
}

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

// aboutPath knows whole paths, everything below a path, and "*".
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

func aboutUser(s *flowcontrolv1.Subject, user *authx.Identity) bool {
	switch {
	case user == nil:
		return false
	case s.User != nil:
		return s.User.Name == every || s.User.Name == user.Name
	case s.Group != nil:
		return s.Group.Name == every || user.InGroup(s.Group.Name)
	case s.ServiceAccount != nil:
		rest, ok := strings.CutPrefix(user.Name, authx.ServiceAccountPrefix)
		if !ok {
			return false
		}
		namespace, name, _ := strings.Cut(rest, ":")
		return namespace == s.ServiceAccount.Namespace && (s.ServiceAccount.Name == every || name == s.ServiceAccount.Name)
	}
	return false
}
