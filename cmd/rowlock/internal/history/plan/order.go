package plan

import (
	"cmp"
	"slices"
)

// early are kinds that other objects refer to, in the order of their creation. Deletions go last, in the opposite
// order.
var early = []string{
	"Namespace", "CustomResourceDefinition", "PriorityClass", "ResourceQuota", "LimitRange", "ServiceAccount", "Secret", "ConfigMap",
	"PersistentVolume", "PersistentVolumeClaim", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service",
}

// order sorts the steps by dependency: by kind, and owners before their dependents.
func (p *Plan) order() {
	depth := p.depths()
	slices.SortStableFunc(p.Steps, func(a, b *Step) int {
		if back := cmp.Compare(last(a), last(b)); back != 0 {
			return back
		}
		forward := cmp.Or(
			cmp.Compare(depth[a.OldUID], depth[b.OldUID]),
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.Target.Resource.String(), b.Target.Resource.String()),
			cmp.Compare(a.Target.Namespace, b.Target.Namespace),
			cmp.Compare(a.Target.Name, b.Target.Name),
		)
		if last(a) == 1 {
			return -forward
		}
		return forward
	})
}

// depths returns the number of owners above each created object, by its past UID. A cycle of owners, which the API does
// not prevent, gets the largest depth.
func (p *Plan) depths() map[string]int {
	above := map[string][]string{}
	for _, s := range p.Steps {
		for _, ref := range owners(s.Object) {
			if owner, _ := ref["uid"].(string); p.made[owner] && s.OldUID != "" {
				above[s.OldUID] = append(above[s.OldUID], owner)
			}
		}
	}
	depth := map[string]int{}
	for range 16 { // no chain of owners is as long
		moved := false
		for uid, list := range above {
			for _, owner := range list {
				if d := depth[owner] + 1; d > depth[uid] {
					depth[uid], moved = d, true
				}
			}
		}
		if !moved {
			break
		}
	}
	return depth
}

func last(s *Step) int {
	if s.Action == Delete {
		return 1
	}
	return 0
}

func rank(s *Step) int {
	if i := slices.Index(early, s.Target.Resource.Kind); i >= 0 {
		return i
	}
	return len(early)
}
