package rbac_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rbac"
	"github.com/rowlock/rowlock/server/release"
)

// TestChangedOnce: release 1.32 lists the errors of a changed object twice, later ones once.
func TestChangedOnce(t *testing.T) {
	rule := []rbacv1.PolicyRule{{}}
	for v, times := range map[release.Version]int{release.V132: 2, release.V133: 1, release.V136: 1} {
		on := kinds.Feature(gates.New(v).Enabled).In(v)
		for _, c := range []struct {
			strategy kinds.Strategy
			obj, old kinds.Object
			same     int
		}{
			{rbac.Role(on), &rbacv1.Role{Rules: rule}, &rbacv1.Role{}, 0},
			{rbac.ClusterRole(on), &rbacv1.ClusterRole{Rules: rule}, &rbacv1.ClusterRole{}, 0},
			{rbac.RoleBinding(on), &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role"}}, &rbacv1.RoleBinding{}, 1},
			{rbac.ClusterRoleBinding(on), &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole"}}, &rbacv1.ClusterRoleBinding{}, 1},
		} {
			if got := *c.strategy.Meta; got.Updates != times || got.Wholes != 1 {
				t.Errorf("%v, %T: metadata is looked at %+v, want %d updates", v, c.obj, got, times)
			}
			once := len(c.strategy.Validate(t.Context(), c.obj))
			if got, want := c.strategy.ValidateUpdate(t.Context(), c.obj, c.old), once*times+c.same; once == 0 || len(got) != want {
				t.Errorf("%v, %s: %v, want %d", v, fmt.Sprintf("%T", c.obj), got, want)
			}
		}
	}
}
