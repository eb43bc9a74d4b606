// Package node lets kubelets read the objects that the pods on their node need.
//
// A node can read a secret, config map, claim, volume or service account exactly while a pod bound to it
// refers to it; for other resources fixed rules apply, whatever roles grant.
package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/rowlock/rowlock/authx"
)

// leaseNamespace holds the leases of nodes.
const leaseNamespace = "kube-node-lease"

// NameOf reports whether an identity is a node agent, and returns the name of its node; ""
// if the user name has none.
func NameOf(id *authx.Identity) (name string, isNode bool) {
	if id == nil || !strings.HasPrefix(id.Name, authx.NodePrefix) || !id.InGroup(authx.GroupNodes) {
		return "", false
	}
	return strings.TrimPrefix(id.Name, authx.NodePrefix), true
}

// Authorizer decides for node agents, and has no opinion on others.
type Authorizer struct {
	Graph *Graph
	// Allows reports whether the fixed rules of node agents cover a request that is not
	// about one of the kinds with a rule here.
	Allows func(a *authx.Attributes, rule *rbacv1.PolicyRule) bool
	Rules  []rbacv1.PolicyRule
	// Selectors restricts nodes to their own Node object and to lists that select their own objects; without
	// it nodes may read all nodes and pods.
	Selectors bool
	// Accounts lets nodes get the service accounts of their pods. Without it the authorizer gives
	// NoAccounts as its reason; if that is "", the reason that it gives for bad token requests.
	Accounts   bool
	NoAccounts string
	// Certificates lets nodes ask for the certificates of their pods, if Selectors is set.
	Certificates bool
}

// answer is a decision and its reason.
type answer struct {
	d      authx.Decision
	reason string
}

var allowed = answer{d: authx.Allow}

func no(format string, args ...any) answer {
	if len(args) == 0 {
		return answer{reason: format}
	}
	return answer{reason: fmt.Sprintf(format, args...)}
}

// Authorize implements authx.Authorizer.
func (z *Authorizer) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	name, isNode := NameOf(a.User)
	if !isNode {
		return authx.NoOpinion, "", nil
	}
	if name == "" {
		return authx.NoOpinion, fmt.Sprintf("unknown node for user %q", a.User.Name), nil
	}
	if a.ResourceRequest {
		if decide := z.special(a); decide != nil {
			got := decide(name, a)
			return got.d, got.reason, nil
		}
	}
	for i := range z.Rules {
		if z.Allows(a, &z.Rules[i]) {
			return authx.Allow, "", nil
		}
	}
	return authx.NoOpinion, "", nil
}

// RulesFor implements authx.RuleResolver: a node's rights depend on its pods.
func (z *Authorizer) RulesFor(_ context.Context, user *authx.Identity, _ string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	if _, isNode := NameOf(user); isNode {
		return nil, nil, true, fmt.Errorf("node authorizer does not support user rule resolution")
	}
	return nil, nil, false, nil
}

// special returns the rule of a kind that has one, or nil.
func (z *Authorizer) special(a *authx.Attributes) func(string, *authx.Attributes) answer {
	switch a.APIGroup + "/" + a.Resource {
	case "/secrets":
		return z.readObject(Secret)
	case "/configmaps":
		return z.readObject(ConfigMap)
	case "/persistentvolumeclaims":
		if a.Subresource == "status" {
			return z.updateStatus(Claim)
		}
		return z.get(Claim)
	case "/persistentvolumes":
		return z.get(Volume)
	case "storage.k8s.io/volumeattachments":
		return z.get(Attachment)
	case "resource.k8s.io/resourceclaims":
		return z.get(ResourceClaim)
	case "/serviceaccounts":
		return z.account
	case "coordination.k8s.io/leases":
		return lease
	case "storage.k8s.io/csinodes":
		return csiNode
	case "resource.k8s.io/resourceslices":
		return z.slice
	case "certificates.k8s.io/podcertificaterequests":
		return z.podCertificate
	case "/nodes":
		if z.Selectors {
			return nodeObject
		}
	case "/pods":
		if z.Selectors {
			return z.pod
		}
	}
	return nil
}

func (z *Authorizer) related(kind Kind, node string, a *authx.Attributes) answer {
	if z.Graph.Reaches(node, Ref{kind, a.Namespace, a.Name}) {
		return allowed
	}
	return no("no relationship found between node '%s' and this object", node)
}

func (z *Authorizer) named(kind Kind, node string, a *authx.Attributes) answer {
	if a.Name == "" {
		return no("No Object name found")
	}
	return z.related(kind, node, a)
}

func (z *Authorizer) get(kind Kind) func(string, *authx.Attributes) answer {
	return func(node string, a *authx.Attributes) answer {
		switch {
		case a.Verb != "get":
			return no("can only get individual resources of this type")
		case a.Subresource != "":
			return no("cannot get subresource")
		}
		return z.named(kind, node, a)
	}
}

func (z *Authorizer) readObject(kind Kind) func(string, *authx.Attributes) answer {
	return func(node string, a *authx.Attributes) answer {
		switch {
		case !oneOf(a.Verb, "get", "list", "watch"):
			return no("can only read resources of this type")
		case a.Subresource != "":
			return no("cannot read subresource")
		case a.Namespace == "":
			return no("can only read namespaced object of this type")
		}
		return z.named(kind, node, a)
	}
}

func (z *Authorizer) updateStatus(kind Kind) func(string, *authx.Attributes) answer {
	return func(node string, a *authx.Attributes) answer {
		if !oneOf(a.Verb, "update", "patch") {
			return no("can only get/update/patch this type")
		}
		return z.named(kind, node, a)
	}
}

func (z *Authorizer) account(node string, a *authx.Attributes) answer {
	if a.Verb == "get" && a.Subresource == "" {
		switch {
		case z.Accounts:
			return z.readObject(Account)(node, a)
		case z.NoAccounts != "":
			return answer{reason: z.NoAccounts}
		}
	}
	return z.createToken(node, a)
}

func (z *Authorizer) createToken(node string, a *authx.Attributes) answer {
	switch {
	case a.Verb != "create" || a.Name == "":
		return no("can only create tokens for individual service accounts")
	case a.Subresource != "token":
		return no("can only create token subresource of serviceaccount")
	}
	return z.related(Account, node, a)
}

func (z *Authorizer) pod(node string, a *authx.Attributes) answer {
	switch {
	case a.Subresource == "" && a.Verb == "get":
		return z.named(Pod, node, a)
	case a.Subresource == "" && oneOf(a.Verb, "list", "watch"):
		if selects(a, "spec.nodeName", node) {
			return allowed
		}
		if a.Name != "" {
			return z.related(Pod, node, a)
		}
		return no("can only list/watch pods with spec.nodeName field selector")
	case a.Subresource == "" && oneOf(a.Verb, "create", "delete"),
		a.Subresource == "status" && oneOf(a.Verb, "update", "patch"),
		a.Subresource == "eviction" && a.Verb == "create":
		return allowed // admission looks closer
	}
	return answer{}
}

// slice is the rule of resource slices. Whose a new one is, admission sees.
func (z *Authorizer) slice(node string, a *authx.Attributes) answer {
	switch {
	case a.Subresource != "":
		return no("cannot authorize ResourceSlice subresources")
	case a.Verb == "create":
		return allowed
	case oneOf(a.Verb, "get", "update", "patch", "delete"):
		return z.named(Slice, node, a)
	case !oneOf(a.Verb, "watch", "list", "deletecollection"):
		return no("only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection")
	case !z.Selectors || selects(a, "spec.nodeName", node):
		return allowed
	}
	return no("can only list/watch/deletecollection resourceslices with nodeName field selector")
}

// podCertificate is the rule of requests for certificates of pods. Admission checks whose pod a new one is of.
func (z *Authorizer) podCertificate(node string, a *authx.Attributes) answer {
	switch {
	case !z.Certificates || !z.Selectors:
		return answer{}
	case a.Subresource != "":
		return no("nodes may not access the status subresource of PodCertificateRequests")
	case a.Verb == "create":
		return allowed
	case a.Verb == "get":
		return z.named(PodCertificate, node, a)
	case !oneOf(a.Verb, "list", "watch"):
		return no("nodes may not %s podcertificaterequests", a.Verb)
	case selects(a, "spec.nodeName", node):
		return allowed
	}
	return no("can only list/watch podcertificaterequests with nodeName field selector")
}

// selects reports whether a request is limited to objects with a field of this value.
func selects(a *authx.Attributes, field, value string) bool {
	for _, r := range a.FieldRequirements {
		if r.Field == field && r.Value == value && (r.Operator == selection.Equals || r.Operator == selection.DoubleEquals) {
			return true
		}
	}
	return false
}

func nodeObject(node string, a *authx.Attributes) answer {
	switch {
	case a.Subresource == "" && oneOf(a.Verb, "create", "update", "patch"),
		a.Subresource == "status" && oneOf(a.Verb, "update", "patch"):
		return allowed // admission looks closer
	case a.Subresource == "" && oneOf(a.Verb, "get", "list", "watch"):
		switch a.Name {
		case node:
			return allowed
		case "":
			return no("node '%s' cannot read all nodes, only its own Node object", node)
		}
		return no("node '%s' cannot read '%s', only its own Node object", node, a.Name)
	}
	return answer{}
}

func lease(node string, a *authx.Attributes) answer {
	switch {
	case !oneOf(a.Verb, "get", "create", "update", "patch", "delete"):
		return no("can only get, create, update, patch, or delete a node lease")
	case a.Namespace != leaseNamespace:
		return no("can only access leases in the %q system namespace", leaseNamespace)
	case a.Verb != "create" && a.Name != node:
		return no("can only access node lease with the same name as the requesting node")
	}
	return allowed
}

func csiNode(node string, a *authx.Attributes) answer {
	switch {
	case !oneOf(a.Verb, "get", "create", "update", "patch", "delete"):
		return no("can only get, create, update, patch, or delete a CSINode")
	case a.Subresource != "":
		return no("cannot authorize CSINode subresources")
	case a.Verb != "create" && a.Name != node:
		return no("can only access CSINode with the same name as the requesting node")
	}
	return allowed
}

func oneOf(v string, list ...string) bool {
	return slices.Contains(list, v)
}
