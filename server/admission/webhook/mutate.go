package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/kinds"
)

// MutatingName is the name of the plugin of webhooks that may change objects.
const MutatingName = "MutatingAdmissionWebhook"

// Mutating asks the webhooks of MutatingWebhookConfigurations.
type Mutating struct{ asker }

// NewMutating makes the plugin. It follows the cache of the config.
func NewMutating(cfg Config) *Mutating {
	return &Mutating{asker{cfg, newSource(cfg.Cache, "mutatingwebhookconfigurations.admissionregistration.k8s.io", mutating), "admit"}}
}

var _ admission.Mutator = (*Mutating)(nil)

// Name implements admission.Plugin.
func (*Mutating) Name() string { return MutatingName }

// Handles implements admission.Plugin.
func (*Mutating) Handles(admission.Operation) bool { return true }

// rounds is the state that the first run of the plugin keeps for its reinvocation: which
// webhooks are to be called again, as the object has changed since they saw it.
type rounds struct {
	seen, again map[string]bool
	output      runtime.Object // at the end of the first run, where anybody wants to know
}

// change notes that the object was changed: webhooks that saw it are to be called again.
func (r *rounds) change() {
	for id := range r.seen {
		r.again[id] = true
	}
	clear(r.seen)
}

// Admit implements admission.Mutator.
func (p *Mutating) Admit(ctx context.Context, a *admission.Attributes) error {
	r, _ := a.Remembered(MutatingName).(*rounds)
	if a.Second() && r == nil {
		return nil
	}
	hooks := p.source.hooks()
	if len(hooks) == 0 || exempt(a.Resource) {
		return nil
	}
	if r == nil {
		r = &rounds{seen: map[string]bool{}, again: map[string]bool{}}
		a.Remember(MutatingName, r)
	}
	if a.Second() && r.output != nil && !apiequality.Semantic.DeepEqual(r.output, a.Object) {
		r.change() // by other plugins
	}
	fields := managedFields(a)
	v := &view{a: a}
	for i, h := range hooks {
		if err := p.ask(ctx, h, i, v, r); err != nil {
			return err
		}
	}
	keepFields(a, fields)
	if !a.Second() && len(r.seen)+len(r.again) > 0 && a.Object != nil {
		r.output = a.Object.DeepCopyObject()
	}
	return nil
}

// ask asks one webhook, if it is meant.
func (p *Mutating) ask(ctx context.Context, h *hook, index int, v *view, r *rounds) error {
	if v.a.Second() && !r.again[h.id] { // who was not asked before is not asked now
		return nil
	}
	s, err := p.wants(ctx, h, v)
	if err != nil || s == nil {
		return err
	}
	if err := s.prepare(v.a); err != nil {
		return apierrors.NewInternalError(err)
	}
	n := notes{h: h, a: v.a, index: index}
	out := p.call(ctx, h, v, s)
	changed := false
	if out.err == nil && len(out.patch) > 0 {
		changed, out.err = p.apply(ctx, h, v, s, out.patch, &n)
	}
	n.mutated(changed)
	if changed {
		r.change()
		v.a.Repeat()
	}
	if h.again {
		r.seen[h.id] = true
	}
	open, err := p.settle(ctx, h, v, &out)
	if open {
		n.failedOpen()
	}
	return err
}

// apply changes the object as a webhook wants it.
func (p *Mutating) apply(ctx context.Context, h *hook, v *view, s *shown, patch []byte, n *notes) (changed bool, err error) {
	ops, err := apply.DecodeOperations(patch)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if len(ops) == 0 {
		return false, nil
	}
	a := v.a
	if a.Object == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.name))
	}
	document, err := ops.Apply(s.object, budget.New(ctx, "the patch of an admission webhook"))
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	before, err := s.target.Show(a, a.Object)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	after := newOf(a, s.target)
	if err := s.decodeInto(document, after); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if got := after.GetObjectKind().GroupVersionKind(); got != s.target.Kind {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q made the object a %v", h.name, got))
	}
	changed = !apiequality.Semantic.DeepEqual(before, after)
	n.patched(patch)
	if err := bring(a, s.target, after); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	v.changed()
	return changed, nil
}

// newOf is an empty object of the kind that a target shows.
func newOf(a *admission.Attributes, t criteria.Target) runtime.Object {
	if criteria.Whole(a) && t.Resource.New != nil {
		return t.Resource.New()
	}
	return reflect.New(reflect.TypeOf(a.Object).Elem()).Interface().(runtime.Object)
}

func (s *shown) decodeInto(document []byte, obj runtime.Object) error {
	_, err := s.codec.Decode(document, obj, codecs.Ignore)
	return err
}

// bring puts an object as a target has it in the place of that of the write, with
// defaults.
func bring(a *admission.Attributes, t criteria.Target, obj runtime.Object) error {
	if whole, ok := obj.(kinds.Object); ok && criteria.Whole(a) {
		back, err := t.Back(a, whole)
		if err != nil {
			return err
		}
		// What a schema does not know is no more let in than from a client.
		if _, err := a.Resource.Coerce(back); err != nil {
			return err
		}
		if st := a.Resource.Storage; st != nil && st.Default != nil {
			st.Default(back)
		}
		if a.Resource.AnyBody() {
			// A client may have patched the kind away, which is found later and refused: it
			// must not be mended here.
			back.GetObjectKind().SetGroupVersionKind(a.Object.GetObjectKind().GroupVersionKind())
		}
		obj = back
	}
	from, to := reflect.ValueOf(obj), reflect.ValueOf(a.Object)
	if from.Type() != to.Type() {
		return fmt.Errorf("a %v cannot take the place of a %v", from.Type(), to.Type())
	}
	to.Elem().Set(from.Elem())
	return nil
}

// managedFields are those of the object before webhooks see it.
func managedFields(a *admission.Attributes) []metav1.ManagedFieldsEntry {
	if m := a.Meta(); m != nil {
		return m.GetManagedFields()
	}
	return nil
}

// keepFields brings the managed fields back where a webhook has spoilt them.
func keepFields(a *admission.Attributes, before []metav1.ManagedFieldsEntry) {
	m := a.Meta()
	if m == nil {
		return
	}
	if err := managedfields.ValidateManagedFields(m.GetManagedFields()); err != nil {
		m.SetManagedFields(before)
		a.Warn(fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err))
	}
}

// notes are the audit annotations about one webhook.
type notes struct {
	h     *hook
	a     *admission.Attributes
	index int
}

func (n *notes) key(prefix string) string {
	round := 0
	if n.a.Second() {
		round = 1
	}
	return fmt.Sprintf("%s/round_%d_index_%d", prefix, round, n.index)
}

func (n *notes) mutated(changed bool) {
	n.annotate("mutation.webhook.admission.k8s.io", struct {
		Configuration string `json:"configuration"`
		Webhook       string `json:"webhook"`
		Mutated       bool   `json:"mutated"`
	}{n.h.configuration, n.h.name, changed})
}

// patched notes the patch itself, where bodies are recorded.
func (n *notes) patched(patch []byte) {
	if !n.a.Recorded {
		return
	}
	n.annotate("patch.webhook.admission.k8s.io", struct {
		Configuration string          `json:"configuration"`
		Webhook       string          `json:"webhook"`
		Patch         json.RawMessage `json:"patch,omitempty"`
		PatchType     string          `json:"patchType,omitempty"`
	}{n.h.configuration, n.h.name, patch, "JSONPatch"})
}

func (n *notes) failedOpen() {
	n.a.Annotate(n.key("failed-open.mutation.webhook.admission.k8s.io"), n.h.name)
}

func (n *notes) annotate(prefix string, v any) {
	if data, err := json.Marshal(v); err == nil {
		n.a.Annotate(n.key(prefix), string(data))
	}
}
