package access

import (
	"encoding/json"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/cache"
)

// The storages of role-based access control.
const (
	rolesKey               = "roles.rbac.authorization.k8s.io"
	clusterRolesKey        = "clusterroles.rbac.authorization.k8s.io"
	roleBindingsKey        = "rolebindings.rbac.authorization.k8s.io"
	clusterRoleBindingsKey = "clusterrolebindings.rbac.authorization.k8s.io"
)

// FeedRules keeps rules as the cache has them. An object that cannot be read
// grants nothing.
func FeedRules(rules *rbac.Rules) *Feed {
	setRole := func(item *cache.Item) {
		var r struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if json.Unmarshal(item.JSON, &r) != nil {
			rules.DeleteRole(item.Namespace, item.Name)
			return
		}
		rules.SetRole(item.Namespace, item.Name, r.Rules)
	}
	setBinding := func(item *cache.Item) {
		var b struct {
			Subjects []rbacv1.Subject `json:"subjects"`
			RoleRef  rbacv1.RoleRef   `json:"roleRef"`
		}
		if json.Unmarshal(item.JSON, &b) != nil {
			rules.DeleteBinding(item.Namespace, item.Name)
			return
		}
		rules.SetBinding(item.Namespace, item.Name, b.RoleRef, b.Subjects)
	}
	return &Feed{
		Reset: rules.Reset,
		Sources: []Source{
			{Storage: rolesKey, Set: setRole, Delete: rules.DeleteRole},
			{Storage: clusterRolesKey, Set: setRole, Delete: rules.DeleteRole},
			{Storage: roleBindingsKey, Set: setBinding, Delete: rules.DeleteBinding},
			{Storage: clusterRoleBindingsKey, Set: setBinding, Delete: rules.DeleteBinding},
		},
	}
}
