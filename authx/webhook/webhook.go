// Package webhook authorizes by calling a remote service.
//
// The service gets a request only if every match condition holds for it; an answer is cached no longer than
// its TTL, for exactly the attributes of its request; failures are not cached, and the failure policy decides
// them.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/remote"
)

const (
	remembered = 8192  // answers at most
	maxGrown   = 10000 // bytes of attributes that a client chooses, of an answer that is remembered
)

// Config configures the service, the requests that it decides, and the result without an answer.
type Config struct {
	Name            string        // in figures
	Kubeconfig      string        // path; its current context is the service
	Version         string        // of SubjectAccessReview: "v1beta1" or "v1"
	Timeout         time.Duration // of one try
	AuthorizedTTL   time.Duration // how long a yes is remembered; 0: not at all
	UnauthorizedTTL time.Duration // how long any other answer is
	OnError         authx.Decision
	Conditions      Conditions
	Observer        Observer     // nil: none
	Dial            remote.Dial  // how the service is reached; nil: directly
	Log             *slog.Logger // of failures that are not reported elsewhere; nil: none
}

// Observer keeps figures.
type Observer interface {
	// Evaluated is called for each round trip; result is "success", "error", "timeout" or "canceled".
	Evaluated(name, result string, took time.Duration)
	// FailedOpen is called for each failure that left the decision to other authorizers.
	FailedOpen(name, result string)
	// Matched is called for each evaluation of conditions. err: some failed; excluded: one
	// did not hold.
	Matched(name string, took time.Duration, excluded bool, err error)
}

// Authorizer calls the service.
type Authorizer struct {
	c       Config
	gvk     schema.GroupVersionKind
	service *remote.Service
	answers *cache.LRUExpireCache

	failures authx.FailureLog
}

// New reads the kubeconfig. It does not call the service yet.
func New(c Config) (*Authorizer, error) {
	if c.Version != "v1" && c.Version != "v1beta1" {
		return nil, fmt.Errorf(`unsupported webhook authorizer version %q, supported versions are "v1", "v1beta1"`, c.Version)
	}
	service, err := remote.New(c.Kubeconfig, c.Timeout, c.Dial)
	if err != nil {
		return nil, err
	}
	if u := service.URL(); u.Scheme != "https" || u.RawQuery != "" {
		return nil, fmt.Errorf("%s: the server of an authorization webhook must be an https URL without parameters", c.Kubeconfig)
	}
	if c.Observer != nil {
		service.Observe = func(ctx context.Context, took time.Duration, err error) {
			c.Observer.Evaluated(c.Name, result(ctx, err), took)
		}
	}
	return &Authorizer{
		c: c, gvk: schema.GroupVersionKind{Group: authorizationv1.GroupName, Version: c.Version, Kind: "SubjectAccessReview"},
		service: service, answers: cache.NewLRUExpireCache(remembered),
		failures: authx.FailureLog{Report: c.logFailure()},
	}, nil
}

// logFailure logs once that the service fails and other authorizers decide, since no client may notice.
func (c *Config) logFailure() func(error) {
	if c.Log == nil || c.OnError != authx.NoOpinion {
		return nil
	}
	log, name, file := c.Log, c.Name, c.Kubeconfig
	return func(err error) {
		log.Warn("an authorization webhook failed; other authorizers decide", "name", name, "file", file, "error", err)
	}
}

// Authorize implements authx.Authorizer.
func (z *Authorizer) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	if len(z.c.Conditions) > 0 {
		holds, err := z.match(ctx, a)
		if err != nil {
			return z.c.OnError, "", err
		}
		if !holds {
			return authx.NoOpinion, "", nil
		}
	}
	key := keyOf(a)
	if kept, ok := z.answers.Get(key); ok {
		v := kept.(*answer)
		return v.decision, v.reason, v.err
	}
	v, err := z.ask(ctx, a)
	if err != nil {
		return z.c.OnError, "", err
	}
	if grown(a) < maxGrown {
		ttl := z.c.UnauthorizedTTL
		if v.allowed {
			ttl = z.c.AuthorizedTTL
		}
		if ttl > 0 {
			z.answers.Add(key, v, ttl)
		}
	}
	return v.decision, v.reason, v.err
}

func (z *Authorizer) match(ctx context.Context, a *authx.Attributes) (bool, error) {
	start := time.Now()
	holds, err := z.c.Conditions.hold(ctx, a)
	if z.c.Observer != nil {
		z.c.Observer.Matched(z.c.Name, time.Since(start), !holds && err == nil, err)
	}
	return holds, err
}

// grown returns the size of the parts that a client can make long.
func grown(a *authx.Attributes) int {
	return len(a.Namespace) + len(a.Verb) + len(a.APIGroup) + len(a.APIVersion) + len(a.Resource) + len(a.Subresource) + len(a.Name) + len(a.Path)
}

// answer is the service's answer.
type answer struct {
	decision authx.Decision
	reason   string
	err      error
	allowed  bool
}

func (z *Authorizer) ask(ctx context.Context, a *authx.Attributes) (*answer, error) {
	question, err := json.Marshal(z.review(a))
	if err != nil {
		return nil, err
	}
	// Both versions have the same status.
	var review struct {
		Status authorizationv1.SubjectAccessReviewStatus `json:"status"`
	}
	if err := z.service.Ask(ctx, question, z.gvk, &review); err != nil {
		if z.c.OnError == authx.NoOpinion && ctx.Err() == nil {
			z.failedOpen(ctx, err)
		}
		return nil, err
	}
	z.failures.Note(nil)
	return judge(&review.Status), nil
}

// failedOpen reports a failure that would otherwise go unnoticed: others may allow the request.
func (z *Authorizer) failedOpen(ctx context.Context, err error) {
	if z.c.Observer != nil {
		z.c.Observer.FailedOpen(z.c.Name, result(ctx, err))
	}
	z.failures.Note(err)
}

// result names how a try went.
func result(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return "success"
	case ctx.Err() != nil:
		return "canceled"
	case remote.IsTimeout(err):
		return "timeout"
	}
	return "error"
}

func judge(s *authorizationv1.SubjectAccessReviewStatus) *answer {
	v := &answer{reason: s.Reason, allowed: s.Allowed}
	switch {
	case s.Denied && s.Allowed:
		v.decision, v.err = authx.Deny, errors.New("webhook subject access review returned both allow and deny response")
	case s.Denied:
		v.decision = authx.Deny
	case s.Allowed:
		v.decision = authx.Allow
	}
	return v
}

// RulesFor implements authx.RuleResolver: the rights that a service grants cannot be listed.
func (z *Authorizer) RulesFor(context.Context, *authx.Identity, string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	return nil, nil, true, errors.New("webhook authorizer does not support user rule resolution")
}
