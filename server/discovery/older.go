package discovery

import (
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The aggregated form, for content negotiation.
const (
	groupName = "apidiscovery.k8s.io"
	listKind  = "APIGroupDiscoveryList"
)

// Empty makes a document of a kind that this package answers with; nil for other kinds.
func Empty(kind schema.GroupVersionKind) runtime.Object {
	switch kind {
	case discoveryv2.SchemeGroupVersion.WithKind(listKind), schema.GroupVersionKind{Group: groupName, Version: "v2beta1", Kind: listKind}:
		return &discoveryv2.APIGroupDiscoveryList{}
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
