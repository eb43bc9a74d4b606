package copying

import (
	"slices"
	"strings"
)

// stage is a step of the copy. The resources of a rank are copied together, the ranks one after the other.
type stage struct {
	ranks       [][]string
	definitions bool // of custom resources, which must be served afterwards
}

const definitions = "customresourcedefinitions.apiextensions.k8s.io"

// before are resources that admission and controllers read when other objects are created.
var before = []string{
	"serviceaccounts", "priorityclasses.scheduling.k8s.io", "runtimeclasses.node.k8s.io", "storageclasses.storage.k8s.io",
	"ingressclasses.networking.k8s.io", "csidrivers.storage.k8s.io", "clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
	"deviceclasses.resource.k8s.io", "nodes",
}

// then are resources that the rest may need.
var then = []string{
	"configmaps", "secrets", "clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "persistentvolumes",
}

// last are resources that could refuse or slow down later writes.
var last = [][]string{
	{"limitranges", "resourcequotas"},
	{"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"},
	{"flowschemas.flowcontrol.apiserver.k8s.io"},
	{
		"validatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicies.admissionregistration.k8s.io",
	},
	{
		"validatingadmissionpolicybindings.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io", "mutatingwebhookconfigurations.admissionregistration.k8s.io",
	},
	{"apiservices.apiregistration.k8s.io"},
}

// arrange sorts resources into stages.
func arrange(resources []string) []stage {
	has := func(names []string) (found []string) {
		for _, name := range names {
			if slices.Contains(resources, name) {
				found = append(found, name)
			}
		}
		return found
	}
	end := stage{}
	known := append([]string{"namespaces", definitions}, append(slices.Clone(before), then...)...)
	for _, rank := range last {
		end.ranks = append(end.ranks, has(rank))
		known = append(known, rank...)
	}
	var rest []string
	for _, name := range resources {
		if !slices.Contains(known, name) {
			rest = append(rest, name)
		}
	}
	return []stage{
		{ranks: [][]string{has([]string{"namespaces"})}},
		{ranks: [][]string{has([]string{definitions})}, definitions: true},
		{ranks: [][]string{has(before), has(then), rest}},
		end,
	}
}

// matches reports whether patterns include a resource: "pods", "deployments.apps", "*.example.com", "*".
func matches(patterns []string, resource string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if p == "*" || p == resource {
			return true
		}
		group, ok := strings.CutPrefix(p, "*.")
		_, own, has := strings.Cut(resource, ".")
		return ok && has && group == own
	})
}
