package apiserverinternal_test

import (
	"strconv"
	"strings"
	"testing"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"

	"github.com/rowlock/rowlock/server/kinds/apiserverinternal"
)

// TestErrorsAreBounded: the errors about many served versions do not each contain the whole long list of decodable versions.
func TestErrorsAreBounded(t *testing.T) {
	for _, c := range []struct {
		versions, most int
		ends           string
	}{
		{2, 1 << 10, "individual served version : s1 must be included in decodableVersions : [v0 v1]"},
		{4000, 8 << 20, "..."},
	} {
		version := apiserverinternalv1alpha1.ServerStorageVersion{APIServerID: "a", EncodingVersion: "v0"}
		for i := range c.versions {
			version.DecodableVersions = append(version.DecodableVersions, "v"+strconv.Itoa(i))
			version.ServedVersions = append(version.ServedVersions, "s"+strconv.Itoa(i))
		}
		v := &apiserverinternalv1alpha1.StorageVersion{Status: apiserverinternalv1alpha1.StorageVersionStatus{
			StorageVersions:       []apiserverinternalv1alpha1.ServerStorageVersion{version},
			CommonEncodingVersion: &version.EncodingVersion,
		}}
		errs, bytes := apiserverinternal.StorageVersion.Validate(t.Context(), v), 0
		for _, err := range errs {
			bytes += len(err.Detail)
		}
		if len(errs) != c.versions || bytes > c.most || !strings.HasSuffix(errs[c.versions-1].Detail, c.ends) {
			t.Errorf("%d versions: %d errors, %d bytes, the last: %.200s", c.versions, len(errs), bytes, errs[len(errs)-1].Detail)
		}
	}
}
