package kinds_test

import (
	"slices"
	"testing"

	"github.com/rowlock/rowlock/server/kinds"
)

func resource(group, version, plural string, custom bool) *kinds.Resource {
	return &kinds.Resource{Group: group, Version: version, Plural: plural, Kind: plural, Custom: custom}
}

func TestCustomResourcesAreOrdered(t *testing.T) {
	c := kinds.NewCatalogue([]*kinds.Resource{
		resource("b.example", "v1beta1", "beans", true),
		resource("", "v1", "pods", false),
		resource("a.example", "v2alpha1", "apples", true),
		resource("b.example", "v10", "beans", true),
		resource("b.example", "v10", "acorns", true),
		resource("apps", "v1", "deployments", false),
	})
	var got []string
	for _, r := range c.All() {
		got = append(got, r.Group+"/"+r.Version+"/"+r.Plural)
	}
	want := []string{
		"/v1/pods", "apps/v1/deployments", "b.example/v10/acorns", "b.example/v10/beans",
		"b.example/v1beta1/beans", "a.example/v2alpha1/apples",
	}
	if !slices.Equal(got, want) {
		t.Errorf("order:\n got %v\nwant %v", got, want)
	}
	if v := c.Versions("b.example"); !slices.Equal(v, []string{"v10", "v1beta1"}) {
		t.Errorf("versions of b.example: %v", v)
	}
}

func TestSnapshotGenerationRises(t *testing.T) {
	c := kinds.NewCatalogue(nil)
	_, first := c.Snapshot()
	c.Set([]*kinds.Resource{resource("", "v1", "pods", false)})
	all, second := c.Snapshot()
	if second <= first || len(all) != 1 {
		t.Errorf("generation %d after %d with %d resources", second, first, len(all))
	}
}
