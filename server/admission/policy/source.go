package policy

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
)

// source follows policies and bindings.
type source struct {
	follower *follow.Follower
	policies map[string]*policy // changed by the follower alone, as bindings is
	bindings map[string]*binding
	list     atomic.Pointer[[]*hook] // nil: to be made anew
}

// policy is a policy as it is stored; it is compiled when first asked for.
type policy struct {
	*admissionregistrationv1.ValidatingAdmissionPolicy
	criteria *criteria.Criteria // nil: there are none
	ignores  bool               // failures
	compiled func() *compiled
}

// binding is a binding as it is stored.
type binding struct {
	name, policy string
	criteria     *criteria.Criteria // nil: all that the policy matches
	params       *admissionregistrationv1.ParamRef
	actions      []admissionregistrationv1.ValidationAction
}

// hook is a policy with what binds it.
type hook struct {
	*policy
	name     string
	bindings []*binding
}

// policyStorage is where policies are stored.
const policyStorage = "validatingadmissionpolicies.admissionregistration.k8s.io"

func newSource(c *cache.Cache, m *conditions.Metrics) *source {
	s := &source{}
	s.reset()
	s.follower = follow.New(c, s.reset, follow.Kind{
		Storage: policyStorage,
		Set:     func(item *cache.Item) { s.set(item.Name, newPolicy(c.JSON(), item, m)) },
		Delete:  func(_, name string) { s.set(name, nil) },
	}, follow.Kind{
		Storage: "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		Set:     func(item *cache.Item) { s.bind(item.Name, newBinding(c.JSON(), item)) },
		Delete:  func(_, name string) { s.bind(name, nil) },
	})
	return s
}

func (s *source) reset() {
	s.policies, s.bindings = map[string]*policy{}, map[string]*binding{}
	s.list.Store(nil)
}

func (s *source) set(name string, p *policy) {
	if p == nil {
		delete(s.policies, name)
	} else {
		s.policies[name] = p
	}
	s.list.Store(nil)
}

func (s *source) bind(name string, b *binding) {
	if b == nil {
		delete(s.bindings, name)
	} else {
		s.bindings[name] = b
	}
	s.list.Store(nil)
}

func newPolicy(codec jsoncodec.Codec, item *cache.Item, m *conditions.Metrics) *policy {
	obj := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if _, err := codec.Decode(item.JSON, obj, codecs.Ignore); err != nil {
		return nil // what cannot be read cannot be enforced; the store keeps no such thing
	}
	p := &policy{ValidatingAdmissionPolicy: obj}
	if m := obj.Spec.MatchConstraints; m != nil {
		p.criteria = criteria.Of(m)
	}
	p.ignores = obj.Spec.FailurePolicy != nil && *obj.Spec.FailurePolicy == admissionregistrationv1.Ignore
	p.compiled = sync.OnceValue(func() *compiled {
		c := compile(&obj.Spec)
		if c.conditions != nil {
			c.conditions.Of, c.conditions.Metrics = conditions.Owner{Name: obj.Name, Kind: "policy", Phase: "validate"}, m
		}
		return c
	})
	return p
}

func newBinding(codec jsoncodec.Codec, item *cache.Item) *binding {
	obj := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if _, err := codec.Decode(item.JSON, obj, codecs.Ignore); err != nil {
		return nil
	}
	b := &binding{name: obj.Name, policy: obj.Spec.PolicyName, params: obj.Spec.ParamRef, actions: obj.Spec.ValidationActions}
	if m := obj.Spec.MatchResources; m != nil {
		b.criteria = criteria.Of(m)
	}
	return b
}

// hooks are the policies that are bound, by name, with their bindings by name.
func (s *source) hooks() []*hook {
	s.follower.RLock()
	defer s.follower.RUnlock()
	if list := s.list.Load(); list != nil {
		return *list
	}
	bound := map[string][]*binding{}
	for _, name := range slices.Sorted(maps.Keys(s.bindings)) {
		b := s.bindings[name]
		bound[b.policy] = append(bound[b.policy], b)
	}
	var list []*hook
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		if p := s.policies[name]; p != nil {
			list = append(list, &hook{policy: p, name: name, bindings: bound[name]})
		}
	}
	s.list.Store(&list)
	return list
}
