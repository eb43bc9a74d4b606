package permits

import (
	"fmt"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Effect is an operation on stored objects. A set of them is the union of their bits.
type Effect uint8

const (
	Get     Effect = 1 << iota // one object is read
	List                       // the objects of a collection are read
	Watch                      // changes are read
	Create                     // an object is created; whether it exists is looked up
	Update                     // an object is replaced
	Delete                     // an object is deleted
	Discard                    // removes an object that could not be read
)

// Target is the target of an effect: an object, or with an empty Name a collection. A cluster-scoped
// resource, including namespaces, has no Namespace.
type Target struct {
	Group, Resource, Subresource string
	Namespace, Name              string
}

// direct are the effects of a verb on the resource and subresource for which it was allowed. A verb that is
// missing here has none.
var direct = map[string]struct {
	effects Effect
	why     string
}{
	"get":   {Get, ""},
	"list":  {List, ""},
	"watch": {List | Watch, "a watch begins with what there is"},

	"create": {Create, ""},
	"update": {Get | Update | Delete, "the stored object is compared and answered with; one that waited for its last finalizer goes with it"},
	"patch":  {Get | Update | Delete, "as update: the whole object is the answer"},
	"delete": {Get | Update | Delete, "an object with finalizers or a grace period is marked; its last state is the answer"},

	"deletecollection": {List | Get | Update | Delete, "each object of the collection is deleted, and the list of them is the answer"},

	"unsafe-delete-ignore-read-errors": {Discard, "it is asked for besides delete"},
}

// reach determines which objects of a further resource a permit covers.
type reach uint8

const (
	sameName      reach = iota // the object of the requested name, in its namespace
	proxiedName                // the object whose name is part of SCHEME:NAME:PORT
	sameNamespace              // those in its namespace
	anywhere                   // any of cluster scope
)

// further is an additional effect, on another resource.
type further struct {
	effects                      Effect
	group, resource, subresource string
	reach                        reach
	why                          string
}

// endpoint is a subresource, or a resource without objects, that is an action.
type endpoint struct{ group, resource, subresource string }

// actions are the effects of requests for such endpoints, whatever their verb: the authorizer has decided
// about the endpoint, and nothing is stored there.
var actions = map[endpoint][]further{
	{"", "pods", "binding"}: {
		{Get | Update, "", "pods", "", sameName, "the pod's node is set"},
	},
	{"", "bindings", ""}: {
		{Get | Update, "", "pods", "", sameNamespace, "the old form of pods/binding: the pod is named in the body alone"},
	},
	{"", "pods", "eviction"}: {
		{Get | Update | Delete, "", "pods", "", sameName, "the status of the pod gets the reason, then the pod is deleted"},
		{List, "policy", "poddisruptionbudgets", "", sameNamespace, "the budgets that the pod counts for"},
		{Get | Update, "policy", "poddisruptionbudgets", "status", sameNamespace, "the one that it is drawn from"},
	},
	{"", "pods", "exec"}:        agentOf,
	{"", "pods", "attach"}:      agentOf,
	{"", "pods", "portforward"}: agentOf,
	{"", "pods", "log"}:         agentOf,
	{"", "pods", "proxy"}: {
		{Get, "", "pods", "", proxiedName, "its address"},
	},
	{"", "services", "proxy"}: {
		{Get, "", "services", "", proxiedName, "its ports"},
		{Get, "", "endpoints", "", proxiedName, "the addresses behind it"},
		{Get, "", "pods", "", sameNamespace, "whether such an address is that of a pod there"},
	},
	{"", "nodes", "proxy"}: {
		{Get, "", "nodes", "", proxiedName, "its address"},
	},
	{"", "serviceaccounts", "token"}: {
		{Get, "", "serviceaccounts", "", sameName, "the account, whose UID goes into the token"},
		{Get, "", "pods", "", sameNamespace, "the pod that the token is bound to: its UID, account and node go into the token"},
		{Get, "", "secrets", "", sameNamespace, "the Secret that the token is bound to: its UID goes into the token"},
		{Get, "", "nodes", "", anywhere, "the node that the token is bound to, or that its pod is on: its UID goes into the token"},
	},
}

// agentOf is the effect of a connection to a pod.
var agentOf = []further{
	{Get, "", "pods", "", sameName, "its containers and its node"},
	{Get, "", "nodes", "", anywhere, "the address of the pod's node"},
}

// Covers reports whether the permit covers an effect on a target.
func (p *Permit) Covers(e Effect, t *Target) bool {
	switch {
	case !p.valid || e == 0:
		return false
	case p.server:
		return true
	case p.actions != nil:
		for i := range p.actions {
			if f := &p.actions[i]; f.effects&e == e && f.covers(p, t) {
				return true
			}
		}
		return false
	}
	if p.effects&e != e || p.resource != t.Resource || p.group != t.Group || p.subresource != t.Subresource {
		return false
	}
	if p.namespace != t.Namespace && (p.namespace != "" || e&^(List|Watch) != 0) {
		return false
	}
	return p.name == t.Name && p.name != "" || p.name == "" && p.collective
}

func (f *further) covers(p *Permit, t *Target) bool {
	if f.resource != t.Resource || f.group != t.Group || f.subresource != t.Subresource {
		return false
	}
	switch f.reach {
	case sameNamespace:
		return t.Namespace == p.namespace && p.namespace != ""
	case anywhere:
		return t.Namespace == ""
	case proxiedName:
		_, name, _, ok := utilnet.SplitSchemeNamePort(p.name)
		return ok && t.Namespace == p.namespace && t.Name == name && name != ""
	}
	return t.Namespace == p.namespace && t.Name == p.name && p.name != ""
}

// UncoveredError is an effect that no authorizer allowed. It is a fault of the
// server, which refuses the request.
type UncoveredError struct {
	Permit Permit
	Effect Effect
	Target Target
}

func (e *UncoveredError) Error() string {
	return fmt.Sprintf("effect %#b on %+v is not covered by %v", e.Effect, e.Target, e.Permit)
}

// Check is Covers as an error.
func (p *Permit) Check(e Effect, t *Target) error {
	if p.Covers(e, t) {
		return nil
	}
	return &UncoveredError{Permit: *p, Effect: e, Target: *t}
}

// Only returns the one name in a collection that is allowed, "" for all.
func (p *Permit) Only() string {
	if p.server || p.actions != nil || !p.collective {
		return ""
	}
	return p.name
}
