package kinds_test

import (
	"slices"
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

// TestReservedResourcesStandLast: with and without definitions, wherever they are given.
func TestReservedResourcesStandLast(t *testing.T) {
	kept, pods, beans := resource("kept.example", "v1", "records", true), resource("", "v1", "pods", false), resource("b.example", "v1", "beans", true)
	kept.Reserved = true
	for _, c := range []struct{ given, want []*kinds.Resource }{
		{[]*kinds.Resource{kept, pods}, []*kinds.Resource{pods, kept}},
		{[]*kinds.Resource{kept, beans, pods}, []*kinds.Resource{pods, beans, kept}},
		{[]*kinds.Resource{kept}, []*kinds.Resource{kept}},
	} {
		if got := kinds.NewCatalogue(c.given).Known(); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
