package access_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/servertest/stock"
)

// The default roles and bindings of each release are those of a stock server, with its default gates and with
// those on that bring some.
func TestPolicyOfReleases(t *testing.T) {
	for _, s := range stock.Servers(t) {
		t.Run(s.Name(), func(t *testing.T) {
			on := gates.New(s.Release).Enabled
			if s.Gates != nil {
				on = func(gate string) bool { return slices.Contains(s.Gates, gate) }
			}
			p, err := access.DefaultPolicy(s.Release, on)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]any{}
			add := func(resource string, obj any) {
				resource = "rbac.authorization.k8s.io/v1/" + resource
				if got[resource] == nil {
					got[resource] = map[string]any{}
				}
				kept := stock.Kept(t, obj)
				got[resource][stock.Name(kept)] = kept
			}
			for _, r := range p.ClusterRoles {
				add("clusterroles", r)
			}
			for _, b := range p.ClusterRoleBindings {
				add("clusterrolebindings", b)
			}
			for _, r := range p.Roles {
				add("roles", r)
			}
			for _, b := range p.RoleBindings {
				add("rolebindings", b)
			}
			for resource := range got {
				if diff := cmp.Diff(s.Objects[resource], got[resource]); diff != "" {
					t.Errorf("%s: -stock +ours\n%s", resource, diff)
				}
			}
			if len(got) != 4 {
				t.Errorf("the policy has %d kinds of objects", len(got))
			}
		})
	}
}

// Servers of one release with the same gates share a policy, which is immutable; others do not.
func TestPolicyIsShared(t *testing.T) {
	of := func(v release.Version, on func(string) bool) *access.Policy {
		t.Helper()
		p, err := access.DefaultPolicy(v, on)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	none, other := func(string) bool { return false }, func(gate string) bool { return gate == "SomethingElse" }
	trust := func(gate string) bool { return gate == "ClusterTrustBundle" }
	plain, trusting := of(release.V134, nil), of(release.V134, trust)
	if plain != of(release.V134, none) || plain != of(release.V134, other) || trusting != of(release.V134, trust) {
		t.Error("the same policy is made twice")
	}
	if plain == trusting || plain == of(release.V135, nil) {
		t.Error("different servers share a policy")
	}
}
