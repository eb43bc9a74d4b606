package policy

import (
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
)

// Where policies are stored.
const (
	validatingStorage = "validatingadmissionpolicies.admissionregistration.k8s.io"
	mutatingStorage   = "mutatingadmissionpolicies.admissionregistration.k8s.io"
)

// validatingPolicies returns policies that refuse.
func validatingPolicies(m *conditions.Metrics) stored {
	return stored{
		policies: validatingStorage, others: mutatingStorage, bindings: "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		policy: func(codec jsoncodec.Codec, item *cache.Item) *policy { return readValidating(codec, item, m) },
		binding: func(codec jsoncodec.Codec, item *cache.Item) *binding {
			obj := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
			if _, err := codec.Decode(item.JSON(), obj, codecs.Ignore); err != nil {
				return nil
			}
			s := &obj.Spec
			return newBinding(obj.Name, s.PolicyName, s.ParamRef, s.MatchResources, s.ValidationActions)
		},
	}
}

func readValidating(codec jsoncodec.Codec, item *cache.Item, m *conditions.Metrics) *policy {
	obj := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if _, err := codec.Decode(item.JSON(), obj, codecs.Ignore); err != nil {
		return nil
	}
	p := newPolicy(obj.Spec.ParamKind, obj.Spec.MatchConstraints, obj.Spec.FailurePolicy)
	p.validation = sync.OnceValue(func() *compiled {
		c := compile(&obj.Spec)
		own(c.conditions, obj.Name, m)
		return c
	})
	return p
}

// mutatingPolicies returns policies that change objects.
func mutatingPolicies(m *conditions.Metrics) stored {
	return stored{
		policies: mutatingStorage, others: validatingStorage, bindings: "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		policy: func(codec jsoncodec.Codec, item *cache.Item) *policy { return readMutating(codec, item, m) },
		binding: func(codec jsoncodec.Codec, item *cache.Item) *binding {
			obj := &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
			if _, err := codec.Decode(item.JSON(), obj, codecs.Ignore); err != nil {
				return nil
			}
			s := &obj.Spec
			return newBinding(obj.Name, s.PolicyName, s.ParamRef, s.MatchResources, nil)
		},
	}
}

func readMutating(codec jsoncodec.Codec, item *cache.Item, m *conditions.Metrics) *policy {
	obj := &admissionregistrationv1.MutatingAdmissionPolicy{}
	if _, err := codec.Decode(item.JSON(), obj, codecs.Ignore); err != nil {
		return nil
	}
	s := &obj.Spec
	p := newPolicy(s.ParamKind, s.MatchConstraints, s.FailurePolicy)
	p.again = s.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
	p.mutation = sync.OnceValue(func() *mutations {
		c := compileMutations(s, p.ignores)
		own(c.conditions, obj.Name, m)
		return c
	})
	return p
}

func newPolicy(params *admissionregistrationv1.ParamKind, match *admissionregistrationv1.MatchResources, failure *admissionregistrationv1.FailurePolicyType) *policy {
	p := &policy{params: params, ignores: failure != nil && *failure == admissionregistrationv1.Ignore}
	if match != nil {
		p.criteria = criteria.Of(match)
	}
	return p
}

// own sets the name and metrics of match conditions; nil has none.
func own(list *conditions.List, policy string, m *conditions.Metrics) {
	if list != nil {
		list.Of, list.Metrics = ownerOf(policy), m
	}
}

// ownerOf names a policy as the metrics of its conditions do.
func ownerOf(policy string) conditions.Owner {
	return conditions.Owner{Name: policy, Kind: "policy", Phase: "validate"}
}

func newBinding(name, policy string, ref *admissionregistrationv1.ParamRef, match *admissionregistrationv1.MatchResources, actions []admissionregistrationv1.ValidationAction) *binding {
	b := &binding{name: name, policy: policy, params: ref, actions: actions}
	if match != nil {
		b.criteria = criteria.Of(match)
	}
	return b
}
