// Package policy enforces the admission policies of a cluster: ValidatingAdmissionPolicies, which refuse
// writes, and MutatingAdmissionPolicies, which change them.
//
// The plugins follow policies and bindings as they change, without polling, and a decision that follows an
// acknowledged change takes it into account; without policies, writes cost nothing more; a policy is compiled
// once, when it first matches.
//
// A client who may write policies and bindings can make each write cost, for each matching policy, binding
// and set of parameters: match conditions within their budget; for a validating policy one budget of
// expressions, for a mutating one a budget for each mutation (expr.Budget, about a second), and the result of
// a mutation: 3 MiB of JSON, which the plugin weighs like a request body before it decodes it, and merges
// only if it does not have too many fields side by side. No mutation makes an object larger than 3 MiB. All
// of this ends with the request. Policies change an object in two passes at most, and the rules of its kind
// then validate the result.
package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/schema"
)

// Config gives policies access to the server.
type Config struct {
	Cluster    criteria.Cluster
	Catalogue  *kinds.Catalogue
	Schemas    *schema.Schemas // how objects merge; nil for policies that change none
	Cache      *cache.Cache
	Objects    *objects.Store // gives parameters in the version of a policy
	Authorizer authx.Authorizer
	Largest    int                 // bytes of an object that a policy may make; 0: budget.DefaultBody
	Metrics    *Metrics            // nil: none
	Conditions *conditions.Metrics // the same
}

// isExempt reports whether policies do not apply to a resource: those that determine rights, and policies themselves,
// so that a policy that refuses everything can be deleted.
func isExempt(r *kinds.Resource) bool {
	switch r.Group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return true
	case "admissionregistration.k8s.io":
		return strings.HasSuffix(r.Plural, "admissionpolicies") || strings.HasSuffix(r.Plural, "admissionpolicybindings")
	}
	return false
}

// denial is one reason against a write.
type denial struct {
	policy, binding string // binding is "" where the policy itself is at fault
	message         string
	reason          metav1.StatusReason
}

// request is one write under examination.
type request struct {
	*Config
	ctx        context.Context
	a          *admission.Attributes
	denials    []denial
	authorizer *expr.Authorizer
	inputs     map[*kinds.Resource]*expr.Input
	namespace  func() (any, error) // of expressions; nil where there is none
	looked     bool                // for the namespace
}

// invocation is one use of a policy: through a binding, with a set of parameters.
type invocation struct {
	*hook
	binding *binding
	target  criteria.Target // the write as the policy sees it
	param   param
}

// misconfigured applies the failure policy to a policy that cannot be evaluated.
func (r *request) misconfigured(h *hook, binding string, err error) {
	if h.ignores {
		return
	}
	what := "binding"
	if binding == "" {
		what = "policy"
	}
	r.denials = append(r.denials, denial{policy: h.name, binding: binding, message: fmt.Sprintf("failed to configure %s: %v", what, err)})
}

// each does something for each use of a policy that the write calls for.
func (r *request) each(h *hook, do func(invocation)) error {
	if h.criteria == nil {
		r.misconfigured(h, "", errors.New("policy contained no match constraints, a required field"))
		return nil
	}
	target, meant, err := h.criteria.Match(r.ctx, r.a, r.Cluster)
	if err != nil {
		r.misconfigured(h, "", err)
		return nil
	}
	if !meant {
		return nil
	}
	params, err := r.paramResource(h)
	if err != nil {
		r.misconfigured(h, "", err)
		return nil
	}
	for _, b := range h.bindings {
		if b.criteria != nil {
			_, meant, err := b.criteria.Match(r.ctx, r.a, r.Cluster)
			if err != nil {
				r.misconfigured(h, b.name, err)
				continue
			}
			if !meant {
				continue
			}
		}
		list, err := r.params(params, b.params)
		if err != nil {
			r.misconfigured(h, b.name, err)
			continue
		}
		if err := r.findNamespace(); err != nil {
			return err
		}
		for _, p := range list {
			do(invocation{hook: h, binding: b, target: target, param: p})
		}
	}
	return nil
}

// input returns the input of expressions for the write as one resource.
func (r *request) input(v *invocation) *expr.Input {
	if r.authorizer == nil {
		r.authorizer = expr.NewAuthorizer(r.ctx, r.Authorizer, r.a.User, expr.Target{
			Resource: r.a.Resource.GVR(), Subresource: r.a.Subresource, Namespace: r.a.Namespace, Name: r.a.Name,
		})
	}
	base := r.inputs[v.target.Resource]
	if base == nil {
		base = v.target.Input(r.a)
		base.Namespace, base.Authorizer = r.namespace, r.authorizer
		if r.inputs == nil {
			r.inputs = map[*kinds.Resource]*expr.Input{}
		}
		r.inputs[v.target.Resource] = base
	}
	return base.WithParams(v.param.tree)
}

// changed drops the input that was made of the object before a change.
func (r *request) changed() { clear(r.inputs) }

// findNamespace finds the namespace that a write is in. Namespaces are in none.
func (r *request) findNamespace() error {
	if r.looked || r.a.Namespace == "" || criteria.Kind(r.a.Resource, r.a.Subresource) == corev1.SchemeGroupVersion.WithKind("Namespace") {
		return nil
	}
	item, err := r.Cluster.Namespaces.Item(r.ctx, "namespaces", "", r.a.Namespace)
	switch {
	case err != nil:
		return err
	case item == nil:
		return apierrors.NewNotFound(corev1.Resource("namespaces"), r.a.Namespace)
	}
	r.namespace, r.looked = func() (any, error) { return namespaceTree(r.Cache.JSON(), item) }, true
	return nil
}
