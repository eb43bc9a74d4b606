package policy

import (
	"maps"
	"slices"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
)

// source follows policies and bindings.
type source struct {
	follower *follow.Follower
	policies map[string]*policy // changed by the follower alone, as bindings is
	bindings map[string]*binding
	list     atomic.Pointer[[]*hook] // nil: must be made again
}

// policy is a policy as it is stored; it is compiled on first use. It refuses or it
// changes.
type policy struct {
	params     *admissionregistrationv1.ParamKind
	criteria   *criteria.Criteria // nil: there are none
	ignores    bool               // failures
	again      bool               // runs again if a later plugin changes the object
	validation func() *compiled
	mutation   func() *mutations
}

// binding is a binding as it is stored.
type binding struct {
	name, policy string
	criteria     *criteria.Criteria // nil: all that the policy matches
	params       *admissionregistrationv1.ParamRef
	actions      []admissionregistrationv1.ValidationAction
}

// hook is a policy with its bindings.
type hook struct {
	*policy
	name     string
	bindings []*binding
}

// stored describes where policies and bindings of a type are stored, and how to decode them. Unreadable ones
// cannot be enforced; the store contains no such objects.
type stored struct {
	policies, bindings string
	others             string // policies of the other type: the metrics of their conditions have the same labels
	policy             func(jsoncodec.Codec, *cache.Item) *policy
	binding            func(jsoncodec.Codec, *cache.Item) *binding
}

// newSource makes a source. metrics are those of the policies; nil: they have none but those of their conditions.
func newSource(cfg *Config, of stored, metrics *Metrics) *source {
	c, s := cfg.Cache, &source{}
	s.reset()
	s.follower = follow.New(c, s.reset, follow.Kind{
		Storage: of.policies,
		Set:     func(item *cache.Item) { s.set(item.Name, of.policy(c.JSON(), item)) },
		Delete: func(_, name string) {
			s.set(name, nil)
			metrics.forget(labelPolicy, name)
			if c.Get(of.others, "", name) == nil {
				cfg.Conditions.Forget(ownerOf(name))
			}
		},
	}, follow.Kind{
		Storage: of.bindings,
		Set:     func(item *cache.Item) { s.bind(item.Name, of.binding(c.JSON(), item)) },
		Delete: func(_, name string) {
			s.bind(name, nil)
			metrics.forget(labelBinding, name)
		},
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

// hooks returns the policies that are bound, by name, with their bindings by name.
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
