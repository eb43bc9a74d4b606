package webhook

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/request"
)

// ValidatingName is the name of the plugin of webhooks that only look.
const ValidatingName = "ValidatingAdmissionWebhook"

// Validating calls the webhooks of ValidatingWebhookConfigurations.
type Validating struct{ asker }

// NewValidating makes the plugin. It follows the cache of the config.
func NewValidating(cfg Config) *Validating {
	return &Validating{newAsker(cfg, "validatingwebhookconfigurations.admissionregistration.k8s.io", validating, "validating")}
}

var _ admission.Validator = (*Validating)(nil)

// Name implements admission.Plugin.
func (*Validating) Name() string { return ValidatingName }

// Handles implements admission.Plugin.
func (*Validating) Handles(admission.Operation) bool { return true }

// Validate implements admission.Validator.
func (p *Validating) Validate(ctx context.Context, a *admission.Attributes) error {
	hooks := p.source.hooks()
	if len(hooks) == 0 || exempt(a.Resource) {
		return nil
	}
	v := &view{a: a}
	var wanted []*hook
	var views []*shown
	for _, h := range hooks {
		s, err := p.wants(ctx, h, v)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		if err := s.prepare(a); err != nil {
			return apierrors.NewInternalError(err)
		}
		wanted, views = append(wanted, h), append(views, s)
	}
	if len(wanted) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	defer request.From(ctx).Took(request.ValidatingWebhooks, time.Now())
	outcomes := make([]outcome, len(wanted))
	var calls sync.WaitGroup
	for i := 1; i < len(wanted); i++ {
		calls.Add(1)
		go func() {
			defer calls.Done()
			outcomes[i] = p.call(ctx, wanted[i], v, views[i])
		}()
	}
	outcomes[0] = p.call(ctx, wanted[0], v, views[0])
	calls.Wait()
	return p.sum(ctx, wanted, v, outcomes)
}

// sum settles all calls. The first refusal is the answer.
func (p *Validating) sum(ctx context.Context, hooks []*hook, v *view, outcomes []outcome) error {
	var first error
	for i, h := range hooks {
		open, err := p.settle(ctx, h, v, &outcomes[i])
		if open {
			v.a.Annotate(fmt.Sprintf("failed-open.validating.webhook.admission.k8s.io/round_0_index_%d", i), h.name)
		}
		if first == nil {
			first = err
		}
	}
	return first
}
