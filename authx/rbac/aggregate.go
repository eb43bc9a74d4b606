package rbac

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ClusterRole holds the relevant parts of a ClusterRole.
type ClusterRole struct {
	Name   string
	Labels labels.Set
	Rules  []rbacv1.PolicyRule
	// Gathers selects the roles whose rules this one has too. It counts while Rules is
	// empty: a controller that writes the rules down has the last word.
	Gathers []labels.Selector
}

// gathers reports whether a role takes its rules from others.
func (c *ClusterRole) gathers() bool { return len(c.Rules) == 0 && len(c.Gathers) > 0 }

func (c *ClusterRole) selects(set labels.Set) bool {
	return slices.ContainsFunc(c.Gathers, func(s labels.Selector) bool { return s.Matches(set) })
}

// gatherer is a role that takes its rules from others.
type gatherer struct {
	*ClusterRole
	parts []string // the names of the roles that it selects, sorted
}

// SetClusterRole takes a ClusterRole.
func (r *Rules) SetClusterRole(c ClusterRole) {
	var made *role
	if !c.gathers() {
		made = newRole(c.Rules)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changeGathered(c.Name, &c)
	if made != nil {
		r.setRole(key{name: c.Name}, made)
	}
}

// DeleteClusterRole forgets a ClusterRole.
func (r *Rules) DeleteClusterRole(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changeGathered(name, nil)
	r.setRole(key{name: name}, nil)
}

// changeGathered puts a cluster role, which may be nil, among those that others gather
// from. r.mu is held.
func (r *Rules) changeGathered(name string, next *ClusterRole) {
	old := r.cluster[name]
	for _, g := range r.gatherers {
		was, is := old != nil && g.selects(old.Labels), next != nil && g.selects(next.Labels)
		r.stale = r.stale || was || is
		switch at, _ := slices.BinarySearch(g.parts, name); {
		case is && !was:
			g.parts = slices.Insert(g.parts, at, name)
		case was && !is:
			g.parts = slices.Delete(g.parts, at, at+1)
		}
	}
	if r.gatherers[name] != nil {
		r.stale = true
		delete(r.gatherers, name)
	}
	if next == nil {
		delete(r.cluster, name)
		return
	}
	r.cluster[name] = next
	if next.gathers() {
		r.stale = true
		r.gatherers[name] = r.gatherer(next)
	}
}

// gatherer finds the parts of a role. r.mu is held.
func (r *Rules) gatherer(c *ClusterRole) *gatherer {
	g := &gatherer{ClusterRole: c}
	for name, other := range r.cluster {
		if c.selects(other.Labels) {
			g.parts = append(g.parts, name)
		}
	}
	slices.Sort(g.parts)
	return g
}

// read locks r.mu for reading, once all aggregated rules are up to date.
func (r *Rules) read() {
	r.mu.RLock()
	for r.stale {
		r.mu.RUnlock()
		r.mu.Lock()
		r.refresh()
		r.mu.Unlock()
		r.mu.RLock()
	}
}

// refresh aggregates rules again. r.mu is held.
func (r *Rules) refresh() {
	if !r.stale {
		return
	}
	r.stale = false
	for name, g := range r.gatherers {
		seen := map[string]bool{name: true}
		r.setRole(key{name: name}, newRole(r.gather(nil, g, seen)))
	}
}

// gather appends the rules of all roles that g selects, of those that these select in
// turn, and so on, each role once.
func (r *Rules) gather(rules []rbacv1.PolicyRule, g *gatherer, seen map[string]bool) []rbacv1.PolicyRule {
	for _, name := range g.parts {
		if seen[name] {
			continue
		}
		seen[name] = true
		if from := r.gatherers[name]; from != nil {
			rules = r.gather(rules, from, seen)
		} else {
			rules = append(rules, r.cluster[name].Rules...)
		}
	}
	return rules
}
