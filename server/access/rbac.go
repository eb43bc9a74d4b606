package access

import (
	"encoding/json"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
)

// The storages of role-based access control.
const (
	rolesKey               = "roles.rbac.authorization.k8s.io"
	clusterRolesKey        = "clusterroles.rbac.authorization.k8s.io"
	roleBindingsKey        = "rolebindings.rbac.authorization.k8s.io"
	clusterRoleBindingsKey = "clusterrolebindings.rbac.authorization.k8s.io"
)

// FollowRules keeps rules in step with a cache. An object that cannot be read grants nothing.
func FollowRules(rules *rbac.Rules, c *cache.Cache) *follow.Follower {
	setRole := func(item *cache.Item) {
		var r struct {
			Rules []rbacv1.PolicyRule `json:"rules"`
		}
		if json.Unmarshal(item.JSON(), &r) != nil {
			rules.DeleteRole(item.Namespace, item.Name)
			return
		}
		rules.SetRole(item.Namespace, item.Name, r.Rules)
	}
	setClusterRole := func(item *cache.Item) {
		c, err := clusterRole(item)
		if err != nil {
			rules.DeleteClusterRole(item.Name)
			return
		}
		rules.SetClusterRole(c)
	}
	setBinding := func(item *cache.Item) {
		var b struct {
			Subjects []rbacv1.Subject `json:"subjects"`
			RoleRef  rbacv1.RoleRef   `json:"roleRef"`
		}
		if json.Unmarshal(item.JSON(), &b) != nil {
			rules.DeleteBinding(item.Namespace, item.Name)
			return
		}
		rules.SetBinding(item.Namespace, item.Name, b.RoleRef, b.Subjects)
	}
	return follow.New(c, rules.Reset,
		follow.Kind{Storage: rolesKey, Set: setRole, Delete: rules.DeleteRole},
		follow.Kind{Storage: clusterRolesKey, Set: setClusterRole, Delete: rules.DeleteRole},
		follow.Kind{Storage: roleBindingsKey, Set: setBinding, Delete: rules.DeleteBinding},
		follow.Kind{Storage: clusterRoleBindingsKey, Set: setBinding, Delete: rules.DeleteBinding},
	)
}

// clusterRole reads the relevant parts of a ClusterRole. An invalid selector selects nothing.
func clusterRole(item *cache.Item) (rbac.ClusterRole, error) {
	var r struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Rules           []rbacv1.PolicyRule     `json:"rules"`
		AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	}
	if err := json.Unmarshal(item.JSON(), &r); err != nil {
		return rbac.ClusterRole{}, fmt.Errorf("cluster role %q: %w", item.Name, err)
	}
	c := rbac.ClusterRole{Name: item.Name, Labels: r.Metadata.Labels, Rules: r.Rules}
	if r.AggregationRule == nil {
		return c, nil
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		if s, err := metav1.LabelSelectorAsSelector(&r.AggregationRule.ClusterRoleSelectors[i]); err == nil {
			c.Gathers = append(c.Gathers, s)
		}
	}
	return c, nil
}
