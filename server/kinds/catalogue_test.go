package kinds_test

import (
	"slices"
	"testing"

	"github.com/rowlock/rowlock/server/kinds"
)

func resource(group, version, plural string, custom bool) *kinds.Resource {
	r := &kinds.Resource{Group: group, Version: version, Plural: plural, Kind: plural}
	if custom {
		r.Schema = kinds.AsStored{}
	}
	return r
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

// TestBuiltInResourcesStayThemselves: no custom resource takes the place of a built-in
// one, is stored where its objects are, or passes for one.
func TestBuiltInResourcesStayThemselves(t *testing.T) {
	roles := resource("rbac.example", "v1", "roles", false)
	roles.Storage = &kinds.Storage{Key: "roles.rbac.example"}
	old := resource("rbac.example", "v1beta1", "roles", false)
	old.Off, old.Storage = true, roles.Storage
	reviews := resource("rbac.example", "v1", "reviews", false)
	same, older, another, virtual := resource("rbac.example", "v1", "roles", true), resource("rbac.example", "v1beta1", "roles", true),
		resource("rbac.example", "v9", "roles", true), resource("rbac.example", "v9", "reviews", true)
	kind := resource("rbac.example", "v1", "others", true)
	kind.Kind = roles.Kind
	stored := resource("rbac.example", "v9", "more", true)
	stored.Storage = roles.Storage
	fine := resource("rbac.example", "v9", "things", true)
	fine.Storage = &kinds.Storage{Key: "things.rbac.example"}
	c := kinds.NewCatalogue([]*kinds.Resource{same, older, another, virtual, kind, stored, fine, roles, old, reviews})
	if got, want := c.Known(), []*kinds.Resource{roles, old, reviews, fine}; !slices.Equal(got, want) {
		t.Errorf("known are %d resources, want %d", len(got), len(want))
	}
	if c.Lookup("rbac.example", "v1", "roles") != roles || c.LookupKind(roles.GVK()) != roles || c.ByStorage("roles.rbac.example") != roles {
		t.Error("a custom resource stands in for a built-in one")
	}
	if c.Lookup("rbac.example", "v9", "roles") != nil || c.Lookup("rbac.example", "v9", "things") != fine {
		t.Error("a shadow is served, or what is none is not")
	}
	if !c.Own("rbac.example", "roles") || !c.Own("rbac.example", "reviews") || c.Own("rbac.example", "things") || c.Own("other.example", "roles") {
		t.Error("built-in kinds are not distinguished from others")
	}
}
