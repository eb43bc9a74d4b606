// Package policy enforces the ValidatingAdmissionPolicies of a cluster.
//
// It promises: policies and bindings are followed as they change, without polling, and a
// decision that follows an acknowledged change of one takes it into account; without any,
// writes cost nothing more; a policy is compiled once, when it first matches; the cost of
// expressions is bounded.
package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
)

// Name is that of the plugin.
const Name = "ValidatingAdmissionPolicy"

// Config is what policies need to know of the server.
type Config struct {
	Cluster    criteria.Cluster
	Catalogue  *kinds.Catalogue
	Cache      *cache.Cache
	Authorizer authx.Authorizer
	Metrics    *Metrics            // nil: nobody looks
	Conditions *conditions.Metrics // the same
}

// Plugin is admission.Validator.
type Plugin struct {
	cfg    Config
	source *source
}

// New makes the plugin. It follows the cache of the config.
func New(cfg Config) *Plugin { return &Plugin{cfg: cfg, source: newSource(cfg.Cache, cfg.Conditions)} }

var _ admission.Validator = (*Plugin)(nil)

// Name implements admission.Plugin.
func (*Plugin) Name() string { return Name }

// Handles implements admission.Plugin.
func (*Plugin) Handles(admission.Operation) bool { return true }

// spared are requests that the cluster needs to find out who may do what, and policies
// themselves: those that refuse everything can be taken away.
func spared(r *kinds.Resource) bool {
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

// Validate implements admission.Validator.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	hooks := p.source.hooks()
	if len(hooks) == 0 || spared(a.Resource) {
		return nil
	}
	r := &request{Plugin: p, ctx: ctx, a: a}
	for _, h := range hooks {
		if err := r.ask(h); err != nil {
			return err
		}
	}
	if len(r.denials) == 0 {
		return nil
	}
	return refusal(a, r.denials[0])
}

// refusal is the answer that a denial makes.
func refusal(a *admission.Attributes, d denial) error {
	text := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", d.policy, d.binding, d.message)
	if d.binding == "" {
		text = fmt.Sprintf("ValidatingAdmissionPolicy '%s' denied request: %s", d.policy, d.message)
	}
	err := a.Forbid(errors.New(text))
	var st *apierrors.StatusError
	if !errors.As(err, &st) {
		return err
	}
	st.ErrStatus.Reason, st.ErrStatus.Code = metav1.StatusReasonInvalid, http.StatusUnprocessableEntity
	switch d.reason {
	case metav1.StatusReasonForbidden:
		st.ErrStatus.Reason, st.ErrStatus.Code = d.reason, http.StatusForbidden
	case metav1.StatusReasonUnauthorized:
		st.ErrStatus.Reason, st.ErrStatus.Code = d.reason, http.StatusUnauthorized
	case metav1.StatusReasonRequestEntityTooLarge:
		st.ErrStatus.Reason, st.ErrStatus.Code = d.reason, http.StatusRequestEntityTooLarge
	}
	st.ErrStatus.Details.Causes = append(st.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
	return err
}

// request is one write under examination.
type request struct {
	*Plugin
	ctx        context.Context
	a          *admission.Attributes
	denials    []denial
	authorizer *expr.Authorizer
	inputs     map[*kinds.Resource]*expr.Input
	namespace  func() (any, error) // of expressions; nil where there is none
	looked     bool                // for the namespace
}

// misconfigured says no where the policy wants that for what cannot be decided.
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

// ask asks a policy through each of its bindings.
func (r *request) ask(h *hook) error {
	if h.criteria == nil {
		r.misconfigured(h, "", errors.New("policy contained no match constraints, a required field"))
		return nil
	}
	target, meant, err := h.criteria.Match(r.ctx, r.a, r.cfg.Cluster)
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
	notes := annotations{}
	for _, b := range h.bindings {
		if err := r.bound(h, b, target, params, &notes); err != nil {
			return err
		}
	}
	for i, key := range notes.keys {
		r.a.Annotate(h.name+"/"+key, strings.Join(notes.values[i], ", "))
	}
	return nil
}

// bound asks a policy through one binding, once for each set of parameters.
func (r *request) bound(h *hook, b *binding, target criteria.Target, params *kinds.Resource, notes *annotations) error {
	if b.criteria != nil {
		_, meant, err := b.criteria.Match(r.ctx, r.a, r.cfg.Cluster)
		if err != nil {
			r.misconfigured(h, b.name, err)
			return nil
		}
		if !meant {
			return nil
		}
	}
	list, err := r.params(params, b.params)
	if err != nil {
		r.misconfigured(h, b.name, err)
		return nil
	}
	if err := r.findNamespace(); err != nil {
		return err
	}
	for _, param := range list {
		result := h.compiled().decide(r.ctx, r.input(target, param), r.a.Operation)
		for i := range result.decisions {
			r.act(h, b, i, &result.decisions[i])
		}
		for _, n := range result.annotations {
			if n.fault != "" {
				d := decision{fault: true, denied: true, message: n.fault, took: n.took}
				r.denials = append(r.denials, denial{policy: h.name, binding: b.name, message: n.fault})
				r.cfg.Metrics.checked(h.name, b.name, &d, "deny")
			} else if n.value != "" {
				notes.add(n.key, n.value)
			}
		}
	}
	return nil
}

// act does what a binding wants done about a decision.
func (r *request) act(h *hook, b *binding, index int, d *decision) {
	if !d.denied {
		if d.fault {
			r.cfg.Metrics.checked(h.name, b.name, d, "allow")
		}
		return
	}
	for _, action := range b.actions {
		switch action {
		case admissionregistrationv1.Deny:
			r.denials = append(r.denials, denial{policy: h.name, binding: b.name, message: d.message, reason: d.reason})
			r.cfg.Metrics.checked(h.name, b.name, d, "deny")
		case admissionregistrationv1.Audit:
			r.a.Annotate("validation.policy.admission.k8s.io/validation_failure", failureNote(h, b, index, d))
			r.cfg.Metrics.checked(h.name, b.name, d, "audit")
		case admissionregistrationv1.Warn:
			r.a.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", h.name, b.name, d.message))
			r.cfg.Metrics.checked(h.name, b.name, d, "warn")
		}
	}
}

// failureNote is the audit annotation of a decision.
func failureNote(h *hook, b *binding, index int, d *decision) string {
	data, err := json.Marshal([]map[string]any{{
		"message": d.message, "policy": h.name, "binding": b.name, "expressionIndex": index, "validationActions": b.actions,
	}})
	if err != nil {
		return d.message
	}
	return string(data)
}

// input is what the expressions see of the write as one resource.
func (r *request) input(target criteria.Target, param func() (any, error)) *expr.Input {
	if r.authorizer == nil {
		r.authorizer = expr.NewAuthorizer(r.ctx, r.cfg.Authorizer, r.a.User, expr.Target{
			Resource: r.a.Resource.GVR(), Subresource: r.a.Subresource, Namespace: r.a.Namespace, Name: r.a.Name,
		})
	}
	base := r.inputs[target.Resource]
	if base == nil {
		base = target.Input(r.a)
		base.Namespace, base.Authorizer = r.namespace, r.authorizer
		if r.inputs == nil {
			r.inputs = map[*kinds.Resource]*expr.Input{}
		}
		r.inputs[target.Resource] = base
	}
	return base.WithParams(param)
}

// findNamespace finds the namespace that a write is in. Namespaces are in none.
func (r *request) findNamespace() error {
	if r.looked || r.a.Namespace == "" || criteria.Kind(r.a.Resource, r.a.Subresource) == corev1.SchemeGroupVersion.WithKind("Namespace") {
		return nil
	}
	item, err := r.cfg.Cluster.Namespaces.Item(r.ctx, "namespaces", "", r.a.Namespace)
	switch {
	case err != nil:
		return err
	case item == nil:
		return apierrors.NewNotFound(corev1.Resource("namespaces"), r.a.Namespace)
	}
	r.namespace, r.looked = func() (any, error) { return namespaceTree(r.cfg.Cache.JSON(), item) }, true
	return nil
}

// annotations are audit annotations of a policy in the making: a key may get several
// values, each once.
type annotations struct {
	keys   []string
	values [][]string
}

func (n *annotations) add(key, value string) {
	for i, k := range n.keys {
		if k != key {
			continue
		}
		for _, v := range n.values[i] {
			if v == value {
				return
			}
		}
		n.values[i] = append(n.values[i], value)
		return
	}
	n.keys, n.values = append(n.keys, key), append(n.values, []string{value})
}
