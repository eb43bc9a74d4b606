package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
)

// MutatingName is the name of the plugin of mutating policies.
const MutatingName = "MutatingAdmissionPolicy"

// Mutating is admission.Mutator. Where policies are not served it does nothing.
type Mutating struct {
	cfg    Config
	source *source
}

// NewMutating makes the plugin. It follows the cache of the config.
func NewMutating(cfg Config) *Mutating {
	p := &Mutating{cfg: cfg}
	served := func(r *kinds.Resource) bool { return r.Storage != nil && r.Storage.Key == mutatingStorage } // in any version
	if slices.ContainsFunc(cfg.Catalogue.All(), served) {
		p.source = newSource(&cfg, mutatingPolicies(cfg.Conditions), nil)
	}
	return p
}

var _ admission.Mutator = (*Mutating)(nil)

// Name implements admission.Plugin.
func (*Mutating) Name() string { return MutatingName }

// Handles implements admission.Plugin. A delete has no object to change.
func (*Mutating) Handles(op admission.Operation) bool { return op != admission.Delete }

// Admit implements admission.Mutator.
func (p *Mutating) Admit(ctx context.Context, a *admission.Attributes) error {
	if p.source == nil || isExempt(a.Resource) {
		return nil
	}
	hooks := p.source.hooks()
	if len(hooks) == 0 {
		return nil
	}
	// Which policies are meant is decided by the object as it was before any of them.
	m := &mutator{request: request{Config: &p.cfg, ctx: ctx, a: a}}
	var uses []invocation
	for _, h := range hooks {
		if err := m.each(h, func(v invocation) { uses = append(uses, v) }); err != nil {
			return err
		}
	}
	if len(uses) > 0 {
		if err := m.run(uses); err != nil {
			return err
		}
	}
	return m.refusal()
}

// mutator changes one write.
type mutator struct {
	request
	rounds *admission.Reinvocations
}

// run lets policies change the object one after the other.
func (m *mutator) run(uses []invocation) error {
	if m.rounds = admission.ReinvocationsOf(m.a, MutatingName); m.rounds == nil {
		return nil
	}
	check := m.a.GuardFields()
	changed := false
	for i := range uses {
		did, err := m.use(&uses[i])
		if err != nil {
			return err
		}
		changed = changed || did
	}
	check()
	if changed { // policies that changed it run again too, if their reinvocation policy allows
		m.rounds.Changed()
		m.a.Repeat()
	}
	m.rounds.End(m.a)
	return nil
}

// use lets one policy change the object.
func (m *mutator) use(v *invocation) (changed bool, err error) {
	c := v.mutation()
	if c.conditions != nil {
		meant, err := c.conditions.Match(m.ctx, m.input(v), m.a.Operation)
		if err != nil {
			m.failed(v, err)
		}
		if err != nil || !meant {
			return false, nil
		}
	}
	id := fmt.Sprintf("%s/%s/%s/%s", v.name, v.binding.name, v.param.namespace, v.param.name)
	if !m.rounds.Runs(m.a, id) {
		return false, nil
	}
	for i := range c.list {
		if m.a.Object == nil {
			break
		}
		did, err := m.mutate(v, &c.list[i])
		if err != nil {
			if final(m.ctx, err) {
				return false, err
			}
			m.failed(v, err)
		}
		changed = changed || did
	}
	if changed {
		m.rounds.Changed()
	}
	if v.again {
		m.rounds.Invoked(id)
	}
	return changed, nil
}

// final marks an error as that of the request, which no failure policy ignores.
func final(ctx context.Context, err error) bool {
	var st apierrors.APIStatus
	return errors.As(err, &st) || ctx.Err() != nil
}

// failed records that a policy could not be evaluated.
func (m *mutator) failed(v *invocation, err error) {
	if !v.ignores {
		m.denials = append(m.denials, denial{policy: v.name, binding: v.binding.name, message: err.Error(), reason: metav1.StatusReasonInvalid})
	}
}

// mutate does one mutation.
func (m *mutator) mutate(v *invocation, by *mutation) (changed bool, err error) {
	shown, err := v.target.Show(m.a, m.a.Object)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	s := &subject{obj: shown, target: v.target, empty: func() runtime.Object { return v.target.New(m.a) }, codec: m.Cache.JSON(), schemas: m.Schemas, largest: cmp.Or(m.Largest, budget.DefaultBody)}
	after, err := by.change(m.ctx, m.input(v), v.mutation().variables, s)
	if err != nil || after == nil {
		return false, err
	}
	before := reflect.New(reflect.TypeOf(m.a.Object).Elem())
	before.Elem().Set(reflect.ValueOf(m.a.Object).Elem())
	if err := v.target.SetObject(m.a, after); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	m.changed()
	return !apiequality.Semantic.DeepEqual(before.Interface(), m.a.Object), nil
}

// refusal returns the answer that denials make; nil without one.
func (m *mutator) refusal() error {
	if len(m.denials) == 0 {
		return nil
	}
	err := m.a.Forbid(errors.New("admission request denied by policy"))
	var st *apierrors.StatusError
	if !errors.As(err, &st) {
		return err
	}
	for i, d := range m.denials {
		text := fmt.Sprintf("policy '%s' with binding '%s' denied request: %s", d.policy, d.binding, d.message)
		if d.binding == "" {
			text = fmt.Sprintf("policy %q denied request: %s", d.policy, d.message)
		}
		if i == 0 {
			st.ErrStatus.Message = text
			if d.reason != "" {
				st.ErrStatus.Reason = d.reason
			}
		}
		st.ErrStatus.Details.Causes = append(st.ErrStatus.Details.Causes, metav1.StatusCause{Message: text})
	}
	return err
}
