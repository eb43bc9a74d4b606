package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
)

// Name is the name of the plugin of validating policies.
const Name = "ValidatingAdmissionPolicy"

// Plugin is admission.Validator.
type Plugin struct {
	cfg    Config
	source *source
}

// New makes the plugin. It follows the cache of the config.
func New(cfg Config) *Plugin {
	return &Plugin{cfg: cfg, source: newSource(&cfg, validatingPolicies(cfg.Conditions), cfg.Metrics)}
}

var _ admission.Validator = (*Plugin)(nil)

// Name implements admission.Plugin.
func (*Plugin) Name() string { return Name }

// Handles implements admission.Plugin.
func (*Plugin) Handles(admission.Operation) bool { return true }

// Validate implements admission.Validator.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	hooks := p.source.hooks()
	if len(hooks) == 0 || isExempt(a.Resource) {
		return nil
	}
	r := &request{Config: &p.cfg, ctx: ctx, a: a}
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

// refusal returns the answer that a denial makes.
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

// ask evaluates a validating policy with all of its bindings and parameters.
func (r *request) ask(h *hook) error {
	notes := annotations{}
	if err := r.each(h, func(v invocation) { r.decide(&v, &notes) }); err != nil {
		return err
	}
	for _, key := range notes.keys {
		r.a.Annotate(h.name+"/"+key, strings.Join(notes.values[key], ", "))
	}
	return nil
}

// decide evaluates a policy with one binding and parameter.
func (r *request) decide(v *invocation, notes *annotations) {
	result := v.validation().decide(r.ctx, r.input(v), r.a.Operation)
	for i := range result.decisions {
		r.act(v.hook, v.binding, i, &result.decisions[i])
	}
	for _, n := range result.annotations {
		if n.fault != "" {
			d := decision{fault: true, denied: true, message: n.fault, took: n.took}
			r.denials = append(r.denials, denial{policy: v.name, binding: v.binding.name, message: n.fault})
			r.Metrics.checked(v.name, v.binding.name, &d, "deny")
		} else if n.value != "" {
			notes.add(n.key, n.value)
		}
	}
}

// act carries out the validation actions of a binding for a decision.
func (r *request) act(h *hook, b *binding, index int, d *decision) {
	if !d.denied {
		if d.fault {
			r.Metrics.checked(h.name, b.name, d, "allow")
		}
		return
	}
	for _, action := range b.actions {
		switch action {
		case admissionregistrationv1.Deny:
			r.denials = append(r.denials, denial{policy: h.name, binding: b.name, message: d.message, reason: d.reason})
			r.Metrics.checked(h.name, b.name, d, "deny")
		case admissionregistrationv1.Audit:
			r.a.Annotate("validation.policy.admission.k8s.io/validation_failure", failureNote(h, b, index, d))
			r.Metrics.checked(h.name, b.name, d, "audit")
		case admissionregistrationv1.Warn:
			r.a.Warn(fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", h.name, b.name, d.message))
			r.Metrics.checked(h.name, b.name, d, "warn")
		}
	}
}

// failureNote returns the audit annotation of a decision.
func failureNote(h *hook, b *binding, index int, d *decision) string {
	data, err := json.Marshal([]map[string]any{{
		"message": d.message, "policy": h.name, "binding": b.name, "expressionIndex": index, "validationActions": b.actions,
	}})
	if err != nil {
		return d.message
	}
	return string(data)
}

// maxNotes limits the bytes of all audit annotations of a policy: each of its parameters, which clients may create, adds some.
const maxNotes = 256 << 10

// annotations are audit annotations of a policy in the making: a key may get several
// values, each once.
type annotations struct {
	keys   []string
	values map[string][]string
	has    map[[2]string]struct{} // keys with their values
	bytes  int
}

// add adds a value, unless the annotations would exceed their bound.
func (n *annotations) add(key, value string) {
	if n.has == nil {
		n.values, n.has = map[string][]string{}, map[[2]string]struct{}{}
	}
	if _, ok := n.has[[2]string{key, value}]; ok || n.bytes+len(value) > maxNotes {
		return
	}
	n.has[[2]string{key, value}] = struct{}{}
	n.bytes += len(value)
	if len(n.values[key]) == 0 {
		n.keys = append(n.keys, key)
	}
	n.values[key] = append(n.values[key], value)
}
