// Package rbac authorizes by roles and their bindings, which it keeps in memory,
// indexed by subject. The owner of the objects reports each change to it.
//
// It promises: a decision reads nothing but memory, and only rules of roles to which bindings of the user or
// one of its groups refer; in a role of many rules only those about the requested resource or path. A change
// takes effect when its method returns. Aggregated cluster roles have the rules of their sources here at
// once, whether or not a controller has written them yet.
//
// Clients that may write roles and bindings cause the cost: memory in proportion to the text of each object,
// whatever others refer to it; for a change of a role the processing of its own text, of a binding that of its
// subjects. The next decision aggregates rules again if the role is a part of aggregated ones: it visits the parts of all of
// these. For a subject with many bindings it visits their roles. A refusal names at most maxMissing missing roles.
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
	slot     *slot // of role
	subjects []subject
	reasons  []string          // why it allows, by subject
	at       map[subject]int32 // where a subject comes first
}

// Rules is the Authorizer and RuleResolver; New makes one.
type Rules struct {
	mu         sync.RWMutex
	slots      map[key]*slot // of roles that exist, or to which bindings refer
	lost       int           // slots without a role
	generation uint64        // grows with each change of a cluster role to which bindings refer
	bindings   map[key]*binding
	found      map[string]*index // by namespace, "" for cluster bindings
	// cluster are the cluster roles as they were set, gatherers those with an aggregation rule; stale means
	// that these must be aggregated again.
	cluster   map[string]*ClusterRole
	gatherers map[string]*gatherer
	stale     bool
}

// index is the rules that the bindings of a namespace grant.
type index struct {
	by         map[subject]*subjectBindings
	generation uint64 // grows with each change of a role of the namespace to which bindings refer
}

// New makes an empty set of rules.
func New() *Rules {
	return &Rules{
		slots: map[key]*slot{}, bindings: map[key]*binding{},
		found:   map[string]*index{},
		cluster: map[string]*ClusterRole{}, gatherers: map[string]*gatherer{},
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
func (r *Rules) setRole(k key, next *role) { r.change(k, func(s *slot) { s.role = next }) }

// SetBinding takes a RoleBinding, or a ClusterRoleBinding where namespace is "".
func (r *Rules) SetBinding(namespace, name string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	b := newBinding(namespace, name, ref, subjects)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(b.key)
	r.bindings[b.key] = b
	b.slot = r.change(b.role, func(s *slot) { s.uses++ })
	in := r.found[namespace]
	if in == nil {
		in = &index{by: map[subject]*subjectBindings{}}
		r.found[namespace] = in
	}
	for s := range b.at {
		h := in.by[s]
		if h == nil {
			h = &subjectBindings{}
			in.by[s] = h
		}
		h.insert(b)
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
	clear(r.slots)
	clear(r.bindings)
	clear(r.found)
	clear(r.cluster)
	clear(r.gatherers)
	r.lost, r.stale = 0, false
}

func (r *Rules) drop(k key) {
	b := r.bindings[k]
	if b == nil {
		return
	}
	delete(r.bindings, k)
	r.change(b.role, func(s *slot) { s.uses-- })
	in := r.found[k.namespace]
	for s := range b.at {
		h := in.by[s]
		h.remove(b)
		if len(h.few)+len(h.grants) == 0 {
			delete(in.by, s)
		}
	}
	if in != nil && len(in.by) == 0 {
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

// subjectOf returns whom a subject means, and how a reason shows it.
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
	q := hashedRequest{Attributes: a}
	b := r.find("", &q)
	if b == nil && a.Namespace != "" {
		b = r.find(a.Namespace, &q)
	}
	if b != nil {
		return authx.Allow, b.allowed(a.User), nil
	}
	return authx.NoOpinion, missingReason(r.missing(a.User, a.Namespace)), nil
}

// find returns a binding of a namespace that allows a request; nil: none does. r.mu is held.
func (r *Rules) find(namespace string, q *hashedRequest) *binding {
	in := r.found[namespace]
	if in == nil {
		return nil
	}
	generation := r.generation + in.generation // both only grow
	if b := in.by[subject{name: q.User.Name}].find(q, generation); b != nil {
		return b
	}
	for _, g := range q.User.Groups {
		if b := in.by[subject{group: true, name: g}].find(q, generation); b != nil {
			return b
		}
	}
	return nil
}

// maxMissing bounds the missing roles that a text names.
const maxMissing = 32

// missing names the missing roles to which bindings of a user refer, in the cluster and in a namespace. r.mu
// is held.
func (r *Rules) missing(user *authx.Identity, namespace string) (list []string) {
	if r.lost == 0 {
		return nil
	}
	visit := func(h *subjectBindings) bool {
		return h.each(func(s *slot, _ *binding) bool {
			switch {
			case s.role != nil:
			case len(list) == maxMissing:
				list = append(list, "further roles not found")
				return false
			default:
				list = append(list, s.missing())
			}
			return true
		})
	}
	if r.each("", user, visit) && namespace != "" {
		r.each(namespace, user, visit)
	}
	return list
}

// each calls fn with the rules that a namespace's bindings grant to a user and its groups, until fn returns
// false. It reports whether fn never did. r.mu is held.
func (r *Rules) each(namespace string, u *authx.Identity, fn func(*subjectBindings) bool) bool {
	in := r.found[namespace]
	if in == nil {
		return true
	}
	if h := in.by[subject{name: u.Name}]; h != nil && !fn(h) {
		return false
	}
	for _, g := range u.Groups {
		if h := in.by[subject{group: true, name: g}]; h != nil && !fn(h) {
			return false
		}
	}
	return true
}

// allowed returns the reason by the first of the subjects that is the user.
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

// missingReason names the missing roles that bindings refer to, each once.
func missingReason(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return "RBAC: " + authx.Problems(missing).Error()
}
