package documents

import (
	"slices"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/aggregator"
)

// Resource is a resource that another server serves.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Verbs      []string
}

// Resources returns the resources of all other servers, each in the preferred version that has it. unknown are
// the versions whose resources are unknown.
func (d *Documents) Resources() (list []Resource, unknown []schema.GroupVersion) {
	services := d.cfg.Services()
	if !services.AnyRemote() {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range services.Groups() {
		seen := map[string]bool{}
		for _, one := range g.Versions {
			if one.Spec.Service == nil || g.Name == "" {
				continue
			}
			gv, version := aggregator.GroupVersion(one), (*discoveryv2.APIVersionDiscovery)(nil)
			if at := d.servers[originOf(one)]; at != nil {
				version = at.discoveryOf(gv)
			}
			if version == nil || version.Freshness == discoveryv2.DiscoveryFreshnessStale {
				unknown = append(unknown, gv)
				continue
			}
			for i := range version.Resources {
				if r := &version.Resources[i]; !seen[r.Resource] {
					seen[r.Resource] = true
					list = append(list, resourceOf(gv, r))
				}
			}
		}
	}
	return list, unknown
}

// Serves reports whether another server has a version, whatever its documents contain.
func (d *Documents) Serves(gv schema.GroupVersion) bool { return d.cfg.Services().Remote(gv) != nil }

// OfKind finds the resource whose objects are of a kind; it is an admission.RemoteKinds.
func (d *Documents) OfKind(gvk schema.GroupVersionKind) (what schema.GroupVersionResource, namespaced, ok bool) {
	service := d.cfg.Services().Remote(gvk.GroupVersion())
	if service == nil {
		return what, false, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := d.servers[originOf(service)]
	if at == nil {
		return what, false, false
	}
	version := at.discoveryOf(gvk.GroupVersion())
	if version == nil {
		return what, false, false
	}
	i := slices.IndexFunc(version.Resources, func(r discoveryv2.APIResourceDiscovery) bool {
		return r.ResponseKind.Kind == gvk.Kind && (r.ResponseKind.Group == "" || r.ResponseKind.Group == gvk.Group)
	})
	if i < 0 {
		return what, false, false
	}
	r := &version.Resources[i]
	return gvk.GroupVersion().WithResource(r.Resource), r.Scope == discoveryv2.ScopeNamespace, true
}

func resourceOf(gv schema.GroupVersion, r *discoveryv2.APIResourceDiscovery) Resource {
	return Resource{GroupVersionResource: gv.WithResource(r.Resource), Kind: r.ResponseKind.Kind, Namespaced: r.Scope == discoveryv2.ScopeNamespace, Verbs: r.Verbs}
}
