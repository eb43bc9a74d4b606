package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
)

const (
	// longRole is how many rules a role must have for an index to be worth its memory.
	longRole = 8
	// manyBindings is the same for the bindings that one subject has in one namespace.
	manyBindings = 16
	// manyKeys limits the index entries of one rule in its role. A rule with more is
	// indexed without its names.
	manyKeys = 1024
)

// about is a resource as rules name it: "pods" is {pods}, "pods/log" is {pods log},
// "*/scale" is {* scale}, "*" is {*}. The name is "" for rules of all names.
type about struct{ resource, sub, name string }

func aboutOf(text string) about {
	resource, sub, _ := strings.Cut(text, "/")
	if sub == "" {
		return about{resource: text}
	}
	return about{resource: resource, sub: sub}
}

// keysFor returns the index keys, without object names, of the rules that may cover a request.
// Only the first n are valid.
func keysFor(a *authx.Attributes) (keys [3]about, n int) {
	keys = [3]about{{resource: a.Resource, sub: a.Subresource}, {resource: "*"}, {resource: "*", sub: a.Subresource}}
	if strings.Contains(a.Resource, "/") { // only access reviews have such requests
		keys[0] = aboutOf(strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/"))
	}
	if a.Subresource == "" {
		return keys, 2
	}
	return keys, 3
}

// role is the rules of a role.
type role struct {
	rules []rbacv1.PolicyRule
	by    map[about][]*rbacv1.PolicyRule // of long roles
	paths []*rbacv1.PolicyRule
}

func newRole(rules []rbacv1.PolicyRule) *role {
	r := &role{rules: rules}
	for i := range rules {
		if len(rules[i].NonResourceURLs) > 0 {
			r.paths = append(r.paths, &rules[i])
		}
	}
	if len(rules) <= longRole {
		return r
	}
	r.by = map[about][]*rbacv1.PolicyRule{}
	for i := range rules {
		names := rules[i].ResourceNames
		if len(names) == 0 || len(names)*len(rules[i].Resources) > manyKeys {
			names = []string{""}
		}
		for _, text := range rules[i].Resources {
			k := aboutOf(text)
			for _, k.name = range names {
				r.by[k] = append(r.by[k], &rules[i])
			}
		}
	}
	return r
}

func (r *role) allows(a *authx.Attributes) bool {
	if !a.ResourceRequest {
		return anyOf(r.paths, a)
	}
	if r.by == nil {
		for i := range r.rules {
			if RuleAllows(a, &r.rules[i]) {
				return true
			}
		}
		return false
	}
	keys, n := keysFor(a)
	for _, k := range keys[:n] {
		if anyOf(r.by[k], a) {
			return true
		}
		if k.name = a.Name; k.name != "" && anyOf(r.by[k], a) {
			return true
		}
	}
	return false
}

func anyOf(rules []*rbacv1.PolicyRule, a *authx.Attributes) bool {
	for _, r := range rules {
		if RuleAllows(a, r) {
			return true
		}
	}
	return false
}

// keys lists the resources, groups and paths of a role, each once.
func (r *role) keys() []about {
	seen := map[about]bool{}
	var keys []about
	for i := range r.rules {
		for _, text := range r.rules[i].Resources {
			if k := aboutOf(text); !seen[k] {
				seen[k] = true
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// held are the bindings of one namespace that name one subject.
type held struct {
	bindings []*binding // in order of name
	wide     *wide      // where they are many
}

// wide finds those of many bindings whose roles may apply to a request.
type wide struct {
	by      map[about][]*binding
	paths   []*binding
	missing int // bindings without a role
}

// find calls fn with the bindings that may allow a request, until it returns false.
// It reports whether it never did.
func (h *held) find(a *authx.Attributes, fn func(*binding) bool) bool {
	if h.wide == nil {
		return every(h.bindings, fn)
	}
	if !a.ResourceRequest {
		return every(h.wide.paths, fn)
	}
	keys, n := keysFor(a)
	for _, k := range keys[:n] {
		if !every(h.wide.by[k], fn) {
			return false
		}
	}
	return true
}

func every(list []*binding, fn func(*binding) bool) bool {
	for _, b := range list {
		if !fn(b) {
			return false
		}
	}
	return true
}

func (h *held) insert(b *binding, roles map[key]*role) {
	at, _ := slices.BinarySearchFunc(h.bindings, b.name, byName)
	h.bindings = slices.Insert(h.bindings, at, b)
	switch {
	case h.wide != nil:
		h.wide.add(b, roles[b.role])
	case len(h.bindings) > manyBindings:
		h.wide = &wide{by: map[about][]*binding{}}
		for _, b := range h.bindings {
			h.wide.add(b, roles[b.role])
		}
	}
}

func (h *held) remove(b *binding, roles map[key]*role) {
	if at, there := slices.BinarySearchFunc(h.bindings, b.name, byName); there {
		h.bindings = slices.Delete(h.bindings, at, at+1)
	}
	if h.wide != nil {
		h.wide.drop(b, roles[b.role])
	}
}

// add takes a binding in, by its role, which may be nil.
func (w *wide) add(b *binding, r *role) {
	if r == nil {
		w.missing++
		return
	}
	for _, k := range r.keys() {
		w.by[k] = append(w.by[k], b)
	}
	if len(r.paths) > 0 {
		w.paths = append(w.paths, b)
	}
}

// drop is the opposite of add, with the same role.
func (w *wide) drop(b *binding, r *role) {
	if r == nil {
		w.missing--
		return
	}
	same := func(other *binding) bool { return other == b }
	for _, k := range r.keys() {
		if w.by[k] = slices.DeleteFunc(w.by[k], same); len(w.by[k]) == 0 {
			delete(w.by, k)
		}
	}
	w.paths = slices.DeleteFunc(w.paths, same)
}

func byName(b *binding, name string) int { return strings.Compare(b.name, name) }
