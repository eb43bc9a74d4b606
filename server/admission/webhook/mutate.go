package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/request"
)

// MutatingName is the name of the plugin of webhooks that may change objects.
const MutatingName = "MutatingAdmissionWebhook"

// Mutating calls the webhooks of MutatingWebhookConfigurations.
type Mutating struct{ asker }

// NewMutating makes the plugin. It follows the cache of the config.
func NewMutating(cfg Config) *Mutating {
	return &Mutating{newAsker(cfg, "mutatingwebhookconfigurations.admissionregistration.k8s.io", mutating, "admit")}
}

var _ admission.Mutator = (*Mutating)(nil)

// Name implements admission.Plugin.
func (*Mutating) Name() string { return MutatingName }

// Handles implements admission.Plugin.
func (*Mutating) Handles(admission.Operation) bool { return true }

// Admit implements admission.Mutator.
func (p *Mutating) Admit(ctx context.Context, a *admission.Attributes) error {
	hooks := p.source.hooks()
	if len(hooks) == 0 || exempt(a.Resource) {
		return nil
	}
	r := admission.ReinvocationsOf(a, MutatingName)
	if r == nil {
		return nil
	}
	check := a.GuardFields()
	v := &view{a: a}
	for i, h := range hooks {
		if err := p.ask(ctx, h, i, v, r); err != nil {
			return err
		}
	}
	check()
	r.End(a)
	return nil
}

// ask calls one webhook, if it matches.
func (p *Mutating) ask(ctx context.Context, h *hook, index int, v *view, r *admission.Reinvocations) error {
	if !r.Runs(v.a, h.id) {
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
	began := time.Now()
	out := p.call(ctx, h, v, s)
	request.From(ctx).Took(request.MutatingWebhooks, began)
	changed := false
	if out.err == nil && len(out.patch) > 0 {
		changed, out.err = p.apply(ctx, h, v, s, out.patch, &n)
	}
	n.mutated(changed)
	if changed {
		r.Changed()
		v.a.Repeat()
	}
	if h.again {
		r.Invoked(h.id)
	}
	open, err := p.settle(ctx, h, v, &out)
	if open {
		n.failedOpen()
	}
	return err
}

// apply applies the patch of a webhook to the object.
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
	after := s.target.New(a)
	if err := s.decodeInto(document, after); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	if got := after.GetObjectKind().GroupVersionKind(); got != s.target.Kind {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q made the object a %v", h.name, got))
	}
	changed = !apiequality.Semantic.DeepEqual(before, after)
	n.patched(patch)
	if err := s.target.SetObject(a, after); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	v.changed()
	return changed, nil
}

func (s *shown) decodeInto(document []byte, obj runtime.Object) error {
	_, err := s.codec.Decode(document, obj, codecs.Ignore)
	return err
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
