// Package builtin is the table of all built-in resources, in discovery order, one file an API group.
//
// A row names a resource; its strategy comes from the package of its group.
package builtin

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
)

// Resources returns all built-in resources with the default configuration.
func Resources() []*kinds.Resource { return Config{}.Resources() }

// Resources returns all built-in resources of the release. Each call makes new values.
func (c Config) Resources() []*kinds.Resource {
	all := c.All()
	if c.Release.Emulated() {
		c.hash(all)
	}
	return slices.DeleteFunc(all, func(r *kinds.Resource) bool {
		if k := r.GVK(); r.New != nil && (!c.Release.Introduced(k) || c.Release.Removed(k)) {
			return true
		}
		r.Release = c.Release
		if r.Deprecation == nil {
			r.Deprecation = kinds.Lifecycle(c.Release, r)
		}
		retable(r)
		reword(r)
		return false
	})
}

// storedBetas are versions in which a server of the newest release stores kinds, whatever other versions they
// have.
var storedBetas = map[string]string{
	"leasecandidates.coordination.k8s.io":                          "v1beta1",
	"clustertrustbundles.certificates.k8s.io":                      "v1beta1",
	"mutatingadmissionpolicies.admissionregistration.k8s.io":       "v1beta1",
	"mutatingadmissionpolicybindings.admissionregistration.k8s.io": "v1beta1",
}

// hash sets the versions of the storage hashes, as a stock server would store the kinds: in the first version that
// all servers of the cluster can read.
func (c Config) hash(all []*kinds.Resource) {
	for _, r := range all {
		s := r.Storage
		if s == nil || s.HashedVersion != "" || r.Group != s.GVK.Group || !c.MinCompatibility.Introduced(r.GVK()) {
			continue
		}
		s.HashedVersion = cmp.Or(storedBetas[s.Key], r.Version)
	}
}

// All returns the built-in resources of all releases.
func (c Config) All() []*kinds.Resource {
	c.Feature = c.feature()
	events := c.eventStorage()
	return slices.Concat(
		c.coreV1(events),
		apiregistrationV1(),
		c.appsV1(),
		eventsV1(events),
		authenticationV1(),
		authenticationV1beta1(),
		authorizationV1(),
		c.autoscalingV2V1(),
		c.batchV1(),
		c.certificatesV1(),
		certificatesBetas(),
		c.networkingGroup(),
		policyV1(),
		c.rbacV1(),
		c.storageGroup(),
		admissionregistrationGroup(c.Release),
		apiextensionsV1(c.Release),
		c.schedulingGroup(),
		c.coordinationV1(),
		coordinationBetas(),
		c.nodeV1(),
		c.discoveryV1(),
		c.resourceGroup(),
		c.flowcontrolV1(),
		apiserverinternalV1alpha1(),
		c.storagemigrationGroup(),
	)
}

// The verbs of most resources, of those that are only created, and of subresources
// that are another way to write their parent, as discovery lists them.
func allVerbs() []string {
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}
func createOnly() []string { return []string{"create"} }
func partVerbs() []string  { return []string{"get", "patch", "update"} }
func proxyVerbs() []string { return []string{"create", "delete", "get", "patch", "update"} }

// rows derives fields from the group, the kind and the plural name: the singular name, the list kind, the
// verbs, and the storage. Versions other than generally available ones are off.
func rows(group, version string, resources ...*kinds.Resource) []*kinds.Resource {
	for _, r := range resources {
		r.Group, r.Version = group, version
		r.Off = !kinds.General(version)
		r.Singular = strings.ToLower(r.Kind)
		r.ListKind = r.Kind + "List"
		if r.Verbs == nil {
			r.Verbs = allVerbs()
		}
		if s := r.Storage; s != nil && s.Key == "" {
			s.Key = schema.GroupResource{Group: group, Resource: r.Plural}.String()
			s.GVK = r.GVK()
		}
		if s := r.Storage; s != nil && s.GVK == r.GVK() {
			s.New = r.New
		}
		if sub := r.Sub("status"); sub != nil && sub.Update == nil {
			sub.Kind, sub.Update = r.Kind, r.Storage.Strategy.Status
		}
	}
	return resources
}

// again returns a resource in another version, whose types are the same but for their package: one of the two is linked.
func again(stored *kinds.Resource, version string) *kinds.Resource {
	r := *stored
	r.Version, r.Off = version, !kinds.General(version)
	same := func(obj kinds.Object) (kinds.Object, error) { return obj, nil }
	r.ToStorage, r.FromStorage = same, same
	return &r
}

// byName sorts the resources of a version, as discovery names them.
func byName(resources []*kinds.Resource) []*kinds.Resource {
	slices.SortStableFunc(resources, func(a, b *kinds.Resource) int { return strings.Compare(a.Plural, b.Plural) })
	return resources
}

// object and list make the functions that allocate a kind.
func object[T any, P interface {
	*T
	kinds.Object
}]() func() kinds.Object {
	return func() kinds.Object { return P(new(T)) }
}

func list[T any, P interface {
	*T
	runtime.Object
}]() func() runtime.Object {
	return func() runtime.Object { return P(new(T)) }
}

// part returns a subresource that writes its parent by a strategy of its own.
func part(name, kind string, s kinds.Strategy) kinds.Subresource {
	return kinds.Subresource{Name: name, Kind: kind, Verbs: partVerbs(), Update: &s}
}

// status returns the subresource that writes the status, by the parent's strategy for it.
func status() kinds.Subresource { return kinds.Subresource{Name: "status", Verbs: partVerbs()} }

// noTable returns a subresource that is not answered as a Table.
func noTable(s kinds.Subresource) kinds.Subresource {
	s.NoTable = true
	return s
}

// scale returns the autoscaling/v1 Scale of a workload.
func scale(m *kinds.ScaleMapping) kinds.Subresource {
	return kinds.Subresource{Name: "scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Verbs: partVerbs(), Scale: m}
}
