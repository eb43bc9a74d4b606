package builtin_test

import (
	"testing"

	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
)

// TestHashedVersions: a storage hash is of the first version that the oldest release of the cluster's servers has.
func TestHashedVersions(t *testing.T) {
	for _, c := range []struct {
		release, minCompatibility release.Version
		storage, want             string
	}{
		{release.V132, release.V132, "volumeattributesclasses.storage.k8s.io", ""},
		{release.V133, release.V132, "volumeattributesclasses.storage.k8s.io", "v1beta1"},
		{release.V133, release.V133, "leasecandidates.coordination.k8s.io", "v1beta1"},
		{release.V134, release.V133, "horizontalpodautoscalers.autoscaling", "v2"},
		{release.V134, release.V133, "customresourcedefinitions.apiextensions.k8s.io", "v1beta1"},
		{release.V136, release.V135, "mutatingadmissionpolicies.admissionregistration.k8s.io", "v1beta1"},
		{release.V136, release.V136, "pods", "v1"},
		{release.V136, release.V136, "events", "v1"},
	} {
		found := false
		for _, r := range (builtin.Config{Release: c.release, MinCompatibility: c.minCompatibility}).Resources() {
			if r.Storage == nil || r.Storage.Key != c.storage {
				continue
			}
			if found = true; r.Storage.HashedVersion != c.want {
				t.Errorf("%s with %s: the hash of %s is of %q, want %q", c.release, c.minCompatibility, c.storage, r.Storage.HashedVersion, c.want)
			}
		}
		if !found {
			t.Errorf("%s has no %s", c.release, c.storage)
		}
	}
}
