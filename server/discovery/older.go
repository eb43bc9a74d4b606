package discovery

import (
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	discoveryv2beta1 "k8s.io/api/apidiscovery/v2beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The aggregated form, for content negotiation.
const (
	groupName = "apidiscovery.k8s.io"
	listKind  = "APIGroupDiscoveryList"
)

// olderList is the aggregated document in its v2beta1 form, which has the same
// fields.
func olderList(items []discoveryv2.APIGroupDiscovery) *discoveryv2beta1.APIGroupDiscoveryList {
	list := &discoveryv2beta1.APIGroupDiscoveryList{}
	for _, item := range items {
		g := discoveryv2beta1.APIGroupDiscovery{ObjectMeta: item.ObjectMeta}
		for _, v := range item.Versions {
			older := discoveryv2beta1.APIVersionDiscovery{
				Version: v.Version, Freshness: discoveryv2beta1.DiscoveryFreshness(v.Freshness),
			}
			for _, r := range v.Resources {
				older.Resources = append(older.Resources, olderEntry(r))
			}
			g.Versions = append(g.Versions, older)
		}
		list.Items = append(list.Items, g)
	}
	return list
}

func olderEntry(r discoveryv2.APIResourceDiscovery) discoveryv2beta1.APIResourceDiscovery {
	e := discoveryv2beta1.APIResourceDiscovery{
		Resource: r.Resource, SingularResource: r.SingularResource,
		ResponseKind: r.ResponseKind, Scope: discoveryv2beta1.ResourceScope(r.Scope),
		Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	for _, s := range r.Subresources {
		e.Subresources = append(e.Subresources, discoveryv2beta1.APISubresourceDiscovery{
			Subresource: s.Subresource, ResponseKind: s.ResponseKind, Verbs: s.Verbs,
		})
	}
	return e
}

// Empty makes a document of a kind that this package answers with; nil for other kinds.
func Empty(kind schema.GroupVersionKind) runtime.Object {
	switch kind {
	case discoveryv2.SchemeGroupVersion.WithKind(listKind):
		return &discoveryv2.APIGroupDiscoveryList{}
	case discoveryv2beta1.SchemeGroupVersion.WithKind(listKind):
		return &discoveryv2beta1.APIGroupDiscoveryList{}
	}
	if kind.Group != "" {
		return nil
	}
	switch kind.Kind {
	case "APIVersions":
		return &metav1.APIVersions{}
	case "APIGroupList":
		return &metav1.APIGroupList{}
	case "APIGroup":
		return &metav1.APIGroup{}
	case "APIResourceList":
		return &metav1.APIResourceList{}
	}
	return nil
}
