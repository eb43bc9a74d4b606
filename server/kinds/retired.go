package kinds

import (
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/release"
)

// retired are versions of kinds that release 1.32 can still read, but never serves; the table of releases has
// those that newer releases no longer serve, or cannot even read. A body of such a version is distinguished
// from one of an unknown version. Versions that are served on request are in the table of resources.
var retired = map[string][]string{
	"admissionregistration.k8s.io/v1alpha1": {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
	"admissionregistration.k8s.io/v1beta1":  {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
	"apiextensions.k8s.io/v1beta1":          {"CustomResourceDefinition"},
	"apiregistration.k8s.io/v1beta1":        {"APIService"},
	"apps/v1beta1":                          {"ControllerRevision", "Deployment", "DeploymentRollback", "Scale", "StatefulSet"},
	"apps/v1beta2":                          {"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "Scale", "StatefulSet"},
	"authentication.k8s.io/v1alpha1":        {"SelfSubjectReview"},
	"authentication.k8s.io/v1beta1":         {"TokenReview"},
	"authorization.k8s.io/v1beta1":          {"LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"autoscaling/v2beta1":                   {"HorizontalPodAutoscaler"},
	"autoscaling/v2beta2":                   {"HorizontalPodAutoscaler"},
	"batch/v1beta1":                         {"CronJob"},
	"certificates.k8s.io/v1beta1":           {"CertificateSigningRequest"},
	"coordination.k8s.io/v1beta1":           {"Lease"},
	"discovery.k8s.io/v1beta1":              {"EndpointSlice"},
	"events.k8s.io/v1beta1":                 {"Event"},
	"extensions/v1beta1":                    {"DaemonSet", "Deployment", "DeploymentRollback", "Ingress", "NetworkPolicy", "ReplicaSet", "Scale"},
	"flowcontrol.apiserver.k8s.io/v1beta1":  {"FlowSchema", "PriorityLevelConfiguration"},
	"flowcontrol.apiserver.k8s.io/v1beta2":  {"FlowSchema", "PriorityLevelConfiguration"},
	"flowcontrol.apiserver.k8s.io/v1beta3":  {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io/v1alpha1":            {"IPAddress", "ServiceCIDR"},
	"networking.k8s.io/v1beta1":             {"Ingress", "IngressClass"},
	"node.k8s.io/v1alpha1":                  {"RuntimeClass"},
	"node.k8s.io/v1beta1":                   {"RuntimeClass"},
	"policy/v1beta1":                        {"Eviction", "PodDisruptionBudget"},
	"rbac.authorization.k8s.io/v1alpha1":    {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"rbac.authorization.k8s.io/v1beta1":     {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"},
	"scheduling.k8s.io/v1alpha1":            {"PriorityClass"},
	"scheduling.k8s.io/v1beta1":             {"PriorityClass"},
	"storage.k8s.io/v1alpha1":               {"CSIStorageCapacity", "VolumeAttachment"},
	"storage.k8s.io/v1beta1":                {"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"},
}

// Retired reports whether a kind is known in a version that is not served.
func (c *Catalogue) Retired(k schema.GroupVersionKind) bool {
	return isRetired(c.release, k.GroupVersion().WithKind(strings.TrimSuffix(k.Kind, "List")))
}

// RetiredVersion reports whether any kind is known in a version that is not served.
func (c *Catalogue) RetiredVersion(gv schema.GroupVersion) bool {
	return slices.Contains(retiredVersions(c.release), gv)
}

// RetiredVersions returns the versions of a group in which a kind is known and never served.
func (c *Catalogue) RetiredVersions(group, kind string) []string {
	var versions []string
	for _, gv := range retiredVersions(c.release) {
		if gv.Group == group && isRetired(c.release, gv.WithKind(kind)) {
			versions = append(versions, gv.Version)
		}
	}
	return versions
}

// isRetired reports whether a release can read a kind in a version and never serves it: none does,
// or it no longer does.
func isRetired(v release.Version, k schema.GroupVersionKind) bool {
	if !v.Binary().Knows(k) {
		return false
	}
	gv := k.GroupVersion().String()
	return slices.Contains(retired[gv], k.Kind) || v.Removed(k) && !slices.Contains(unserved, gv)
}

// retiredVersions returns the versions in which a release can read a kind that it never serves, in
// order.
func retiredVersions(v release.Version) []schema.GroupVersion {
	var all []schema.GroupVersion
	for text, names := range retired {
		group, version, _ := strings.Cut(text, "/")
		gv := schema.GroupVersion{Group: group, Version: version}
		if slices.ContainsFunc(names, func(name string) bool { return isRetired(v, gv.WithKind(name)) }) {
			all = append(all, gv)
		}
	}
	for _, k := range release.Kinds() {
		if gv := k.GroupVersion(); !slices.Contains(all, gv) && isRetired(v, k) {
			all = append(all, gv)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].String() < all[j].String() })
	return all
}
