package rbac_test

import (
	"testing"

	rbacv1beta1 "k8s.io/api/rbac/v1beta1"

	"github.com/rowlock/rowlock/server/kinds/rbac"
)

// TestFirstWords holds the words of the column of roles to those of the version in which it was first shown.
func TestFirstWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{rbac.RoleBindingColumns.Definitions[1].Description, rbacv1beta1.RoleBinding{}.SwaggerDoc()["roleRef"]},
		{rbac.ClusterRoleBindingColumns.Definitions[1].Description, rbacv1beta1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"]},
	} {
		if c.got != c.want || c.want == "" {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
