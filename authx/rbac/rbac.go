// Package rbac authorizes by roles and their bindings, which it keeps in memory,
// indexed by subject. The owner of the objects reports each change to it.
//
// It promises: a decision reads nothing but memory, and only rules about
// the requested resource or path, of bindings that name the user or one of its
// groups; a change takes effect when its method returns. Aggregated cluster roles
// have the rules of their sources here at once, whether or not a controller has written them yet.
package rbac

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
)

// key is a namespaced name; the namespace is "" for cluster roles.
type key struct{ namespace, name string }

// subject is whom a binding names. Service accounts are users.
type subject struct {
	group bool
	name  string
}

// binding is a RoleBinding, or a ClusterRoleBinding where its namespace is "".
type binding struct {
	key
	role     key
	subjects []subject
	reasons  []string          // why it allows, by subject
	at       map[subject]int32 // where a subject comes first
}

// Rules is the Authorizer and RuleResolver. The zero value holds no rules.
type Rules struct {
	mu       sync.RWMutex
	roles    map[key]*role
	bindings map[key]*binding
	// uses are the bindings that refer to a role, which need not be there.
	uses map[key]map[*binding]bool
	// found are the rules that the bindings of a namespace ("" for cluster bindings) grant, by subject.
	found map[string]map[subject]*held
	// cluster are the cluster roles as they were set, gatherers those with an aggregation rule; stale says
	// that these must be aggregated again.
	cluster, gatherers map[string]*ClusterRole
	stale              bool
}

// New makes an empty set of rules.
func New() *Rules {
	return &Rules{
		roles: map[key]*role{}, bindings: map[key]*binding{},
		uses: map[key]map[*binding]bool{}, found: map[string]map[subject]*held{},
		cluster: map[string]*ClusterRole{}, gatherers: map[string]*ClusterRole{},
	}
}

// SetRole takes a Role, or a ClusterRole without labels where namespace is "".
func (r *Rules) SetRole(namespace, name string, rules []rbacv1.PolicyRule) {
	if namespace == "" {
		r.SetClusterRole(ClusterRole{Name: name, Rules: rules})
		return
	}
	made := newRole(rules)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setRole(key{namespace, name}, made)
}

// DeleteRole forgets a Role, or a ClusterRole where namespace is "".
func (r *Rules) DeleteRole(namespace, name string) {
	if namespace == "" {
		r.DeleteClusterRole(name)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setRole(key{namespace, name}, nil)
}

// setRole puts a role, which may be nil, in the place of another. r.mu is held.
func (r *Rules) setRole(k key, next *role) {
	old := r.roles[k]
	for b := range r.uses[k] {
		index := r.found[b.namespace]
		for s := range b.at {
			if w := index[s].wide; w != nil {
				w.drop(b, old)
				w.add(b, next)
			}
		}
	}
	if next == nil {
		delete(r.roles, k)
	} else {
		r.roles[k] = next
	}
}

// SetBinding takes a RoleBinding, or a ClusterRoleBinding where namespace is "".
func (r *Rules) SetBinding(namespace, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	b := newBinding(namespace, name, ref, subjects)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(b.key)
	r.bindings[b.key] = b
	if r.uses[b.role] == nil {
		r.uses[b.role] = map[*binding]bool{}
	}
	r.uses[b.role][b] = true
	index := r.found[namespace]
	if index == nil {
		index = map[subject]*held{}
		r.found[namespace] = index
	}
	for s := range b.at {
		h := index[s]
		if h == nil {
			h = &held{}
			index[s] = h
		}
		h.insert(b, r.roles)
	}
}

// DeleteBinding forgets a RoleBinding, or a ClusterRoleBinding where namespace is "".
func (r *Rules) DeleteBinding(namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(key{namespace, name})
}

// Reset forgets everything.
func (r *Rules) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.roles)
	clear(r.bindings)
	clear(r.uses)
	clear(r.found)
	clear(r.cluster)
	clear(r.gatherers)
	r.stale = false
}

func (r *Rules) drop(k key) {
	b := r.bindings[k]
	if b == nil {
		return
	}
	delete(r.bindings, k)
	delete(r.uses[b.role], b)
	if len(r.uses[b.role]) == 0 {
		delete(r.uses, b.role)
	}
	index := r.found[k.namespace]
	for s := range b.at {
		h := index[s]
		h.remove(b, r.roles)
		if len(h.bindings) == 0 {
			delete(index, s)
		}
	}
	if len(index) == 0 {
		delete(r.found, k.namespace)
	}
}

func newBinding(namespace, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) *binding {
	b := &binding{key: key{namespace, name}, role: key{name: ref.Name}, at: make(map[subject]int32, len(subjects))}
	if ref.Kind == "Role" {
		b.role.namespace = namespace
	}
	for i := range subjects {
		s, shown, ok := subjectOf(&subjects[i], namespace)
		if !ok {
			continue
		}
		if _, again := b.at[s]; again {
			continue
		}
		b.at[s] = int32(len(b.subjects))
		b.subjects = append(b.subjects, s)
		b.reasons = append(b.reasons, b.reason(ref, shown))
	}
	return b
}

func (b *binding) reason(ref rbacv1.RoleRef, who string) string {
	if b.namespace == "" {
		return fmt.Sprintf("RBAC: allowed by ClusterRoleBinding %q of %s %q to %s", b.name, ref.Kind, ref.Name, who)
	}
	return fmt.Sprintf("RBAC: allowed by RoleBinding %q of %s %q to %s", b.name+"/"+b.namespace, ref.Kind, ref.Name, who)
}

// subjectOf is whom a subject means, and how a reason shows it.
func subjectOf(s *rbacv1.Subject, namespace string) (who subject, shown string, ok bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return subject{name: s.Name}, fmt.Sprintf("User %q", s.Name), true
	case rbacv1.GroupKind:
		return subject{group: true, name: s.Name}, fmt.Sprintf("Group %q", s.Name), true
	case rbacv1.ServiceAccountKind:
		ns := s.Namespace
		ns = cmp.Or(ns, namespace)
		if ns == "" {
			return subject{}, "", false
		}
		return subject{name: authx.ServiceAccountPrefix + ns + ":" + s.Name}, fmt.Sprintf("ServiceAccount %q", s.Name+"/"+ns), true
	}
	return subject{}, "", false
}

// Authorize implements authx.Authorizer. It never denies.
func (r *Rules) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if a.User == nil {
		return authx.NoOpinion, "", nil
	}
	r.read()
	defer r.mu.RUnlock()
	var missing []string
	reason := ""
	look := func(b *binding) bool {
		role := r.roles[b.role]
		if role == nil {
			missing = append(missing, b.role.missing())
			return true
		}
		if !role.allows(a) {
			return true
		}
		reason = b.allowed(a.User)
		return false
	}
	visit := func(h *held) bool {
		if !h.find(a, look) {
			return false
		}
		if h.wide != nil && h.wide.missing > 0 {
			missing = append(missing, r.missing(h)...)
		}
		return true
	}
	if !r.each("", a.User, visit) || a.Namespace != "" && !r.each(a.Namespace, a.User, visit) {
		return authx.Allow, reason, nil
	}
	return authx.NoOpinion, missingReason(missing), nil
}

// missing names the roles that bindings refer to in vain. r.mu is held.
func (r *Rules) missing(h *held) (list []string) {
	for _, b := range h.bindings {
		if r.roles[b.role] == nil {
			list = append(list, b.role.missing())
		}
	}
	return list
}

// each calls fn with the rules that a namespace's bindings grant to a user and its groups, until fn returns
// false. It reports whether fn never did. r.mu is held.
func (r *Rules) each(namespace string, u *authx.Identity, fn func(*held) bool) bool {
	index := r.found[namespace]
	if len(index) == 0 {
		return true
	}
	if h := index[subject{name: u.Name}]; h != nil && !fn(h) {
		return false
	}
	for _, g := range u.Groups {
		if h := index[subject{group: true, name: g}]; h != nil && !fn(h) {
			return false
		}
	}
	return true
}

// allowed is the reason by the first of the subjects that is the user.
func (b *binding) allowed(u *authx.Identity) string {
	at := len(b.reasons)
	if i, ok := b.at[subject{name: u.Name}]; ok {
		at = int(i)
	}
	for _, g := range u.Groups {
		if i, ok := b.at[subject{group: true, name: g}]; ok {
			at = min(at, int(i))
		}
	}
	return b.reasons[at]
}

func (k key) missing() string {
	if k.namespace == "" {
		return fmt.Sprintf("clusterrole.rbac.authorization.k8s.io %q not found", k.name)
	}
	return fmt.Sprintf("role.rbac.authorization.k8s.io %q not found", k.name)
}

// missingReason names the roles that bindings refer to in vain, each once.
func missingReason(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return "RBAC: " + authx.Problems(missing).Error()
}
