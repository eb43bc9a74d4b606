package remote

// virtual are resources that can be listed and are not stored: the server computes them.
var virtual = map[string]string{
	"componentstatuses":                    "made up by the server when it is asked",
	"revisions.history.rowlock.dev":        "the past of other objects",
	"clusterrevisions.history.rowlock.dev": "the past of other objects",
	"moments.history.rowlock.dev":          "the past of other objects",
}

// usuallyAggregated are groups that aggregated servers usually serve, for a user that may not read APIServices.
var usuallyAggregated = map[string]bool{
	"metrics.k8s.io": true, "custom.metrics.k8s.io": true, "external.metrics.k8s.io": true,
}

// names are groups that show objects of another group under a second name: all resources of a group, or some.
var names = map[string]map[string]string{
	"events.k8s.io": {"events": ""},
	"extensions": {
		"daemonsets": "apps", "deployments": "apps", "replicasets": "apps", "ingresses": "networking.k8s.io",
		"networkpolicies": "networking.k8s.io", "podsecuritypolicies": "policy",
	},
}

// leaveOut returns the reason to skip a resource; "" to collect it.
func (k *collector) leaveOut(r Resource, elsewhere map[string]string) string {
	if service := elsewhere[r.APIVersion()]; service != "" {
		return "kept by another API server (APIService " + Printable(service) + ")"
	}
	if reason := virtual[r.String()]; reason != "" {
		return reason
	}
	if group, ok := names[r.Group][r.Name]; ok {
		if other, ok := k.out.Discovered.Find(group, r.Name); ok {
			return "the same objects as " + other.String()
		}
	}
	if !r.Can("list") {
		return "it cannot be listed"
	}
	if k.blind && usuallyAggregated[r.Group] {
		return "usually kept by another API server; this user may not see by which"
	}
	if k.o.Refuse != nil {
		return k.o.Refuse(r, k.storage[r.String()] != "")
	}
	return ""
}
