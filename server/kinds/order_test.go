package kinds_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/server/kinds"
)

// TestVersionRanks: ranks compare as the names do, in whatever order these come.
func TestVersionRanks(t *testing.T) {
	names := []string{"v1", "v2beta1", "foo", "v10", "v2", "v1alpha2", "v01", "v1beta1", "bar", "v99999999999999999999", "v1beta10", "", "v1alpha1"}
	ranks := kinds.VersionRanks(names)
	sign := func(n int) int { return min(max(n, -1), 1) }
	for _, a := range names {
		for _, b := range names {
			if got, want := sign(ranks[a]-ranks[b]), sign(version.CompareKubeAwareVersionStrings(a, b)); got != want {
				t.Errorf("%q to %q: %d, want %d", a, b, got, want)
			}
		}
	}
	if len(ranks) != len(names) {
		t.Errorf("%d ranks of %d names", len(ranks), len(names))
	}
}
