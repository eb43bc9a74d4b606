// Package webhook calls the admission webhooks of a cluster on writes: mutating webhooks
// one after the other, validating webhooks in parallel.
//
// It promises: configurations are followed as they change, without polling, and a write
// that follows an acknowledged change of one takes it into account; a write that no webhook
// matches costs no call; webhooks are not called for the configurations of webhooks and
// policies, so that a broken webhook can be removed; answers of webhooks are validated;
// bodies of requests and answers are not logged.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/webhook"
)

// Config gives webhooks access to the server.
type Config struct {
	Client     *webhook.Client
	Cluster    criteria.Cluster
	Cache      *cache.Cache
	Authorizer authx.Authorizer
	Metrics    *Metrics            // nil: none
	Conditions *conditions.Metrics // the same
	Log        *slog.Logger
}

// asker is the common part of both plugins.
type asker struct {
	cfg    Config
	source *source
	phase  string // as metrics name it
}

func newAsker(cfg Config, storage string, read func(json.Codec, *cache.Item) []*hook, phase string) asker {
	return asker{cfg, newSource(cfg.Cache, storage, read, func(hook string) {
		cfg.Metrics.forget(hook, phase)
		cfg.Conditions.Forget(conditions.Owner{Name: hook, Kind: "webhook", Phase: phase})
	}), phase}
}

// exempt reports whether writes of a resource are never sent to webhooks.
func exempt(r *kinds.Resource) bool { return r.Group == "admissionregistration.k8s.io" }

// callError means that a webhook could not be called, or returned no valid answer.
type callError struct {
	hook string
	err  error
	code int // label of metrics
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.hook, e.err)
}
func (e *callError) Unwrap() error { return e.err }

// denialError means that a webhook refused.
type denialError struct{ *apierrors.StatusError }

// view is the write in the form for webhooks: it is made once for each version, and again after a change.
type view struct {
	a      *admission.Attributes
	shown  map[*kinds.Resource]*shown
	asking *expr.Authorizer
}

// shown is a write as one resource has it.
type shown struct {
	target      criteria.Target
	object, old []byte // JSON, nil where there is none
	input       *expr.Input
	codec       json.Codec
}

// as shows a write as a target has it.
func (v *view) as(ctx context.Context, t criteria.Target, cfg *Config) *shown {
	if s := v.shown[t.Resource]; s != nil {
		return s
	}
	if v.asking == nil {
		v.asking = expr.NewAuthorizer(ctx, cfg.Authorizer, v.a.User, expr.Target{
			Resource: v.a.Resource.GVR(), Subresource: v.a.Subresource, Namespace: v.a.Namespace, Name: v.a.Name,
		})
	}
	s := &shown{target: t, input: t.Input(v.a), codec: cfg.Cache.JSON()}
	s.input.Authorizer = v.asking
	if v.shown == nil {
		v.shown = map[*kinds.Resource]*shown{}
	}
	v.shown[t.Resource] = s
	return s
}

// changed drops the forms of the object before a change.
func (v *view) changed() { v.shown = nil }

// wants reports whether a webhook matches, and by which resource.
func (k *asker) wants(ctx context.Context, h *hook, v *view) (*shown, error) {
	target, meant, err := h.criteria.Match(ctx, v.a, k.cfg.Cluster)
	if err != nil || !meant {
		return nil, err
	}
	s := v.as(ctx, target, &k.cfg)
	if len(h.conditions) == 0 {
		return s, nil
	}
	list := h.compiled(k)
	meant, err = list.Match(ctx, s.input, v.a.Operation)
	if err != nil {
		h.failed.Log(ctx, k.cfg.Log, slog.LevelWarn, "the match conditions of a webhook cannot be evaluated, the request is refused", "webhook", h.name)
		return nil, apierrors.NewForbidden(v.a.Resource.GroupResource(), v.a.Name, err)
	}
	if !meant {
		k.cfg.Conditions.Excluded(list.Of, v.a.Operation)
		return nil, nil
	}
	return s, nil
}

// outcome is the result of a call.
type outcome struct {
	*answer
	err  error
	took time.Duration
}

// call calls a webhook. It touches nothing that other goroutines may use.
func (k *asker) call(ctx context.Context, h *hook, v *view, s *shown) (out outcome) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			out.err = apierrors.NewInternalError(fmt.Errorf("the call of webhook %q has panicked: %v", h.name, p))
		}
		out.took = time.Since(began)
	}()
	if v.a.DryRun && !h.quiet {
		if !h.declared {
			return outcome{err: &callError{h.name, errors.New("Webhook SideEffects is nil"), http.StatusBadRequest}}
		}
		return outcome{err: apierrors.NewBadRequest(fmt.Sprintf("admission webhook %q does not support dry run", h.name))}
	}
	if h.speaks == "" {
		return outcome{err: &callError{h.name, errors.New("could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"), http.StatusBadRequest}}
	}
	uid, body, err := s.review(v.a, h.speaks)
	if err != nil {
		return outcome{err: &callError{h.name, fmt.Errorf("could not create admission objects: %w", err), http.StatusBadRequest}}
	}
	if h.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.timeout)
		defer cancel()
	}
	ctx, span := tracing.Start(ctx, h.spanName())
	defer span.End()
	if span.On() {
		span.Text("configuration", h.configuration)
		span.Text("webhook", h.name)
		span.Text("resource", v.a.Resource.GVR().String())
		span.Text("subresource", v.a.Subresource)
		span.Text("operation", string(v.a.Operation))
		span.Text("UID", string(uid))
		defer func() {
			if out.err != nil {
				span.Fail()
			}
		}()
	}
	data, err := k.cfg.Client.Post(ctx, h.target, body)
	if err != nil {
		return outcome{err: callFailed(h.name, err)}
	}
	review, err := decode(data, h.speaks)
	if err != nil {
		return outcome{err: callFailed(h.name, err)}
	}
	out.answer, err = verify(review, uid, h.speaks, h.mutates)
	switch {
	case err != nil:
		out.err = &callError{h.name, fmt.Errorf("received invalid webhook response: %w", err), http.StatusServiceUnavailable}
	case !out.allowed:
		out.err = denialError{denial(h.name, out.answer.result)}
	case len(out.patch) > 0 && out.patchType != admissionv1.PatchTypeJSONPatch:
		out.err = &callError{h.name, fmt.Errorf("unsupported patch type %q", out.patchType), http.StatusBadRequest}
	}
	return out
}

// callFailed returns the error of a call that got no answer.
func callFailed(hook string, err error) error {
	e := &callError{hook, fmt.Errorf("failed to call webhook: %w", err), http.StatusBadRequest}
	var config *webhook.ConfigError
	var st *apierrors.StatusError
	switch {
	case errors.As(err, &config):
		e.err = fmt.Errorf("could not get REST client: %w", config.Err)
	case errors.As(err, &st):
		e.code = int(st.ErrStatus.Code)
	}
	return e
}

// settle records a call, passes on the webhook's warnings and annotations, and returns the error of the
// write. open means that a failure was ignored.
func (k *asker) settle(ctx context.Context, h *hook, v *view, out *outcome) (open bool, err error) {
	a := v.a
	if out.answer != nil {
		out.answer.report(h.name, a)
	}
	var call *callError
	var denied denialError
	switch {
	case out.err == nil:
		k.cfg.Metrics.called(h.name, k.phase, a.Operation, out.took, http.StatusOK, false)
		return false, nil
	case errors.As(out.err, &denied):
		code := int(denied.ErrStatus.Code)
		k.cfg.Metrics.rejected(h.name, k.phase, a.Operation, "no_error", code)
		k.cfg.Metrics.called(h.name, k.phase, a.Operation, out.took, code, true)
		return false, denied.StatusError
	case !errors.As(out.err, &call):
		k.cfg.Metrics.rejected(h.name, k.phase, a.Operation, "apiserver_internal_error", 0)
		k.cfg.Metrics.called(h.name, k.phase, a.Operation, out.took, 0, true)
		return false, out.err
	}
	ended := errors.Is(out.err, context.Canceled)
	k.cfg.Metrics.called(h.name, k.phase, a.Operation, out.took, call.code, !h.ignores)
	if !h.ignores {
		if !ended {
			k.cfg.Metrics.rejected(h.name, k.phase, a.Operation, "calling_webhook_error", call.code)
		}
		h.failed.Log(ctx, k.cfg.Log, slog.LevelWarn, "a webhook could not be called, the request is refused", "webhook", h.name, "configuration", h.configuration, "error", loggable(call))
		return false, apierrors.NewInternalError(call)
	}
	if !ended {
		k.cfg.Metrics.failedOpen(h.name, k.phase)
		h.failed.Log(ctx, k.cfg.Log, slog.LevelWarn, "a webhook could not be called; the request continues", "webhook", h.name, "configuration", h.configuration, "error", loggable(call))
	}
	if ctx.Err() != nil {
		return false, apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	return !ended, nil
}

// loggable returns an error without the text from a webhook, which may repeat the object.
func loggable(e *callError) string {
	if st, ok := errors.AsType[*apierrors.StatusError](e.err); ok {
		return fmt.Sprintf("the answer had code %d", st.ErrStatus.Code)
	}
	return e.err.Error()
}
