package verbs

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	removedv1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/core/v1"
)

// known reports whether a stock server has a type for a kind, and makes an object of it if this server has one too. A body of such
// a kind is decoded before it is refused.
func (h *Handler) known(k schema.GroupVersionKind) (runtime.Object, bool) {
	if r := h.Catalogue.LookupKind(k); r != nil && r.HasGoType() {
		return r.New(), true
	}
	if obj, ok := h.universal(k); ok {
		return obj, true
	}
	if obj := newAuxiliary(k); obj != nil {
		return obj, true
	}
	if single, ok := strings.CutSuffix(k.Kind, "List"); ok && single != "" {
		r := h.Catalogue.LookupKind(k.GroupVersion().WithKind(single))
		if r != nil && r.NewList != nil {
			return r.NewList(), true
		}
		return nil, r != nil || h.Catalogue.Retired(k)
	}
	return nil, h.Catalogue.LookupKind(k) != nil || h.Catalogue.Retired(k)
}

// universal makes an object of a kind that is the same in every group: some are known in any version, even one that does not
// exist, and options and events in versions that have kinds.
func (h *Handler) universal(k schema.GroupVersionKind) (runtime.Object, bool) {
	switch k.Kind {
	case "Status":
		return &metav1.Status{}, true
	case "APIVersions":
		return &metav1.APIVersions{}, true
	case "APIGroup":
		return &metav1.APIGroup{}, true
	case "APIGroupList":
		return &metav1.APIGroupList{}, true
	case "APIResourceList":
		return &metav1.APIResourceList{}, true
	}
	if !slices.Contains(h.Catalogue.Versions(k.Group), k.Version) && !h.Catalogue.RetiredVersion(k.GroupVersion()) {
		return nil, false
	}
	switch k.Kind {
	case "WatchEvent":
		return &metav1.WatchEvent{}, true
	case "ListOptions":
		return &metav1.ListOptions{}, true
	case "GetOptions":
		return &metav1.GetOptions{}, true
	case "DeleteOptions":
		return &metav1.DeleteOptions{}, true
	case "CreateOptions":
		return &metav1.CreateOptions{}, true
	case "UpdateOptions":
		return &metav1.UpdateOptions{}, true
	case "PatchOptions":
		return &metav1.PatchOptions{}, true
	}
	return nil, false
}

// newAuxiliary makes an object of a kind without a resource: bodies and options of subresources, and obsolete kinds.
func newAuxiliary(k schema.GroupVersionKind) runtime.Object {
	switch k.GroupVersion() {
	case corev1.SchemeGroupVersion:
		switch k.Kind {
		case "List":
			return &corev1.List{}
		case "NodeProxyOptions":
			return &corev1.NodeProxyOptions{}
		case "PodAttachOptions":
			return &corev1.PodAttachOptions{}
		case "PodExecOptions":
			return &corev1.PodExecOptions{}
		case "PodLogOptions":
			return &corev1.PodLogOptions{}
		case "PodPortForwardOptions":
			return &corev1.PodPortForwardOptions{}
		case "PodProxyOptions":
			return &corev1.PodProxyOptions{}
		case "PodStatusResult":
			return &removedv1.PodStatusResult{}
		case "RangeAllocation":
			return &corev1.RangeAllocation{}
		case "SerializedReference":
			return &corev1.SerializedReference{}
		case "ServiceProxyOptions":
			return &corev1.ServiceProxyOptions{}
		}
	case autoscalingv1.SchemeGroupVersion:
		if k.Kind == "Scale" {
			return &autoscalingv1.Scale{}
		}
	case authenticationv1.SchemeGroupVersion:
		if k.Kind == "TokenRequest" {
			return &authenticationv1.TokenRequest{}
		}
	case policyv1.SchemeGroupVersion:
		if k.Kind == "Eviction" {
			return &policyv1.Eviction{}
		}
	}
	return nil
}
