package builtin

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rbac"
)

func (c Config) rbacV1() []*kinds.Resource {
	return rows("rbac.authorization.k8s.io", "v1",
		&kinds.Resource{
			Plural: "clusterrolebindings", Kind: "ClusterRoleBinding",
			New: object[rbacv1.ClusterRoleBinding](), NewList: list[rbacv1.ClusterRoleBindingList](),
			Storage: &kinds.Storage{Strategy: rbac.ClusterRoleBinding(c.Feature)}, Columns: rbac.ClusterRoleBindingColumns,
		},
		&kinds.Resource{
			Plural: "clusterroles", Kind: "ClusterRole",
			New: object[rbacv1.ClusterRole](), NewList: list[rbacv1.ClusterRoleList](),
			Storage: &kinds.Storage{Strategy: rbac.ClusterRole(c.Feature)},
		},
		&kinds.Resource{
			Plural: "rolebindings", Kind: "RoleBinding", Namespaced: true,
			New: object[rbacv1.RoleBinding](), NewList: list[rbacv1.RoleBindingList](),
			Storage: &kinds.Storage{Strategy: rbac.RoleBinding(c.Feature)}, Columns: rbac.RoleBindingColumns,
		},
		&kinds.Resource{
			Plural: "roles", Kind: "Role", Namespaced: true,
			New: object[rbacv1.Role](), NewList: list[rbacv1.RoleList](),
			Storage: &kinds.Storage{Strategy: rbac.Role(c.Feature)},
		},
	)
}
