package kinds_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

func kindOf(text string) schema.GroupVersionKind {
	parts := strings.Split(text, "/")
	k := schema.GroupVersionKind{Version: parts[len(parts)-2], Kind: parts[len(parts)-1]}
	if len(parts) == 3 {
		k.Group = parts[0]
	}
	return k
}

func catalogueOf(v release.Version) *kinds.Catalogue {
	return kinds.NewCatalogue([]*kinds.Resource{{Version: "v1", Kind: "Pod", Plural: "pods", Release: v}})
}

// TestRetired: versions that a release can read and never serves.
func TestRetired(t *testing.T) {
	for text, want := range map[string]string{ // 1.32 to 1.36
		"apps/v1beta1/Deployment": "+++++", "rbac.authorization.k8s.io/v1alpha1/Role": "+++++", "rbac.authorization.k8s.io/v1alpha1/RoleList": "+++++",
		"authentication.k8s.io/v1beta1/SelfSubjectReview": "-++++", "autoscaling/v2beta2/HorizontalPodAutoscaler": "+----",
		"admissionregistration.k8s.io/v1beta1/ValidatingAdmissionPolicy": "--+++", "networking.k8s.io/v1alpha1/ServiceCIDR": "+----",
		"storage.k8s.io/v1alpha1/VolumeAttributesClass": "-++++", "v1/Pod": "-----", "admission.k8s.io/v1beta1/AdmissionReview": "-----", "apps/v1beta1/Nothing": "-----",
	} {
		var got strings.Builder
		for _, v := range release.All() {
			c, k := catalogueOf(v), kindOf(text)
			if c.Retired(k) {
				got.WriteByte('+')
			} else {
				got.WriteByte('-')
			}
			single := k.GroupVersion().WithKind(strings.TrimSuffix(k.Kind, "List"))
			if c.Retired(k) != slices.Contains(c.RetiredVersions(k.Group, single.Kind), k.Version) || c.Retired(k) && !c.RetiredVersion(k.GroupVersion()) {
				t.Errorf("%s of %s: %t, among %q", text, v, c.Retired(k), c.RetiredVersions(k.Group, single.Kind))
			}
		}
		if got.String() != want {
			t.Errorf("%s is retired in %s, want %s", text, &got, want)
		}
	}
	if catalogueOf(release.V134).RetiredVersion(schema.GroupVersion{Group: "autoscaling", Version: "v2beta2"}) || !kinds.NewCatalogue(nil).RetiredVersion(schema.GroupVersion{Group: "autoscaling", Version: "v2beta2"}) {
		t.Error("autoscaling/v2beta2 is retired in 1.34, or not in 1.32")
	}
}

// TestLifecycle: a server that emulates a release warns of versions that are deprecated in the release of the binary.
func TestLifecycle(t *testing.T) {
	for text, want := range map[string][5]string{
		"v1/Pod":       {},
		"v1/Endpoints": {"", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice", "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"},
		"storage.k8s.io/v1beta1/VolumeAttributesClass": {
			"", "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass", "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass",
			"storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass", "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use storage.k8s.io/v1 VolumeAttributesClass",
		},
		"certificates.k8s.io/v1beta1/ClusterTrustBundle": {},
		"coordination.k8s.io/v1alpha2/LeaseCandidate": {
			"", "coordination.k8s.io/v1alpha2 LeaseCandidate is deprecated in v1.35+, unavailable in v1.38+", "coordination.k8s.io/v1alpha2 LeaseCandidate is deprecated in v1.35+, unavailable in v1.38+", "coordination.k8s.io/v1alpha2 LeaseCandidate is deprecated in v1.35+, unavailable in v1.38+", "coordination.k8s.io/v1alpha2 LeaseCandidate is deprecated in v1.35+, unavailable in v1.38+",
		},
	} {
		k := kindOf(text)
		r := &kinds.Resource{Group: k.Group, Version: k.Version, Kind: k.Kind, New: func() kinds.Object { return &corev1.Pod{} }}
		for i, v := range release.All() {
			got := ""
			if d := kinds.Lifecycle(v, r); d != nil {
				got = d.Warning
			}
			if got != want[i] {
				t.Errorf("%s of %s: %q, want %q", text, v, got, want[i])
			}
		}
	}
}

// TestEnableLater: a server that emulates a release knows the kinds of later ones, and does not serve them.
func TestEnableLater(t *testing.T) {
	const hint = ". Consider setting --emulated-version=1.34"
	for _, c := range []struct {
		release release.Version
		asked   string
		want    string
	}{
		{release.V132, "resource.k8s.io/v1=true", "unknown api groups resource.k8s.io"},
		{release.V133, "resource.k8s.io/v1=true", "cannot enable version resource.k8s.io/v1 in runtime-config because all the resources have been introduced after the current version 1.33" + hint},
		{release.V133, "resource.k8s.io/v1=false", ""},
		{release.V133, "resource.k8s.io/v1/resourceclaims", "cannot enable resource resource.k8s.io/v1, Resource=resourceclaims in runtime-config because it is introduced at 1.34 after the current version 1.33" + hint},
		{release.V133, "api/all", ""},
		{release.V134, "resource.k8s.io/v1=true", ""},
		{release.V134, "autoscaling/v2beta2=true", "group version autoscaling/v2beta2 that has not been registered"},
		{release.V132, "autoscaling/v2beta2=true", ""},
		{release.V135, "authentication.k8s.io/v1beta1=true", ""},
	} {
		all := append(someResources(), resource("authentication.k8s.io", "v1", "tokenreviews", false))
		if c.release >= release.V134 {
			all = append(all, resource("resource.k8s.io", "v1", "resourceclaims", true))
		}
		got := ""
		if _, err := kinds.Enable(c.release, all, pairs(c.asked), true, noGate); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.release, c.asked, got, c.want)
		}
	}
}
