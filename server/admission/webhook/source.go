package webhook

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/admission/conditions"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/ratelog"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/webhook"
)

// hook is one webhook of a configuration, ready to be called.
type hook struct {
	id, name, configuration string
	criteria                *criteria.Criteria
	conditions              []admissionregistrationv1.MatchCondition
	target                  webhook.Target
	timeout                 time.Duration // 0: the timeout of the request
	ignores                 bool          // failures
	quiet                   bool          // it may be called for dry runs
	declared                bool          // its side effects are
	speaks                  string        // a version that is spoken here
	mutates, again          bool          // it may change objects; its reinvocation policy is IfNeeded

	once sync.Once
	list *conditions.List

	failed ratelog.Line // each write may cause one
}

// compiled returns the match conditions, compiled on first use.
func (h *hook) compiled(k *asker) *conditions.List {
	h.once.Do(func() {
		h.list = conditions.Compile(expr.NewCompiler(release.Default), expr.Offer{Authorizer: true}, h.conditions, h.ignores)
		h.list.Of, h.list.Metrics = conditions.Owner{Name: h.name, Kind: "webhook", Phase: k.phase}, k.cfg.Conditions
	})
	return h.list
}

// spanName returns the name of a call in traces.
func (h *hook) spanName() string {
	if h.mutates {
		return "Call mutating webhook"
	}
	return "Call validating webhook"
}

// source follows the configurations of one kind.
type source struct {
	follower *follow.Follower
	configs  map[string][]*hook // by configuration; changed by the follower alone
	list     atomic.Pointer[[]*hook]
	forget   func(hook string) // is called for a webhook that no configuration names any more
}

func newSource(c *cache.Cache, storage string, read func(jsoncodec.Codec, *cache.Item) []*hook, forget func(hook string)) *source {
	s := &source{forget: forget}
	s.reset()
	s.follower = follow.New(c, s.reset, follow.Kind{
		Storage: storage,
		Set:     func(item *cache.Item) { s.set(item.Name, read(c.JSON(), item)) },
		Delete:  func(_, name string) { s.set(name, nil) },
	})
	return s
}

// set replaces the webhooks of a configuration; nil: there is none any more.
func (s *source) set(configuration string, hooks []*hook) {
	gone := map[string]bool{}
	for _, h := range s.configs[configuration] {
		gone[h.name] = true
	}
	if s.configs[configuration] = hooks; hooks == nil {
		delete(s.configs, configuration)
	}
	s.list.Store(nil)
	for _, h := range hooks {
		delete(gone, h.name)
	}
	for _, list := range s.configs {
		if len(gone) == 0 {
			return
		}
		for _, h := range list {
			delete(gone, h.name)
		}
	}
	for name := range gone {
		s.forget(name)
	}
}

func (s *source) reset() {
	s.configs = map[string][]*hook{}
	s.list.Store(nil)
}

// hooks returns all webhooks, ordered by the names of their configurations, and within one in
// its own order.
func (s *source) hooks() []*hook {
	s.follower.RLock()
	defer s.follower.RUnlock()
	if list := s.list.Load(); list != nil {
		return *list
	}
	var list []*hook
	for _, name := range slices.Sorted(maps.Keys(s.configs)) {
		list = append(list, s.configs[name]...)
	}
	s.list.Store(&list)
	return list
}

// mutating reads a MutatingWebhookConfiguration.
func mutating(codec jsoncodec.Codec, item *cache.Item) []*hook {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{}
	if _, err := codec.Decode(item.JSON(), c, codecs.Ignore); err != nil {
		return nil
	}
	list := make([]*hook, len(c.Webhooks))
	for i := range c.Webhooks {
		list[i] = newHook(c.Name, i, &c.Webhooks[i])
		list[i].mutates = true
	}
	return list
}

// validating reads a ValidatingWebhookConfiguration.
func validating(codec jsoncodec.Codec, item *cache.Item) []*hook {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if _, err := codec.Decode(item.JSON(), c, codecs.Ignore); err != nil {
		return nil
	}
	list := make([]*hook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		list[i] = newHook(c.Name, i, &admissionregistrationv1.MutatingWebhook{
			Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
			NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects,
			TimeoutSeconds: w.TimeoutSeconds, AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions,
		})
	}
	return list
}

// newHook reads one webhook. A validating webhook has the same fields as a mutating one, except for the
// reinvocation policy.
func newHook(configuration string, index int, w *admissionregistrationv1.MutatingWebhook) *hook {
	h := &hook{
		id: fmt.Sprintf("%s/%d", configuration, index), name: w.Name, configuration: configuration, target: targetOf(&w.ClientConfig),
		criteria: criteria.OfRules(w.Rules, w.MatchPolicy, w.NamespaceSelector, w.ObjectSelector), conditions: w.MatchConditions,
		ignores:  w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Ignore,
		declared: w.SideEffects != nil, speaks: reviewVersion(w.AdmissionReviewVersions),
		again: w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy,
	}
	if e := w.SideEffects; e != nil {
		h.quiet = *e == admissionregistrationv1.SideEffectClassNone || *e == admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	if w.TimeoutSeconds != nil {
		h.timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	return h
}

// reviewVersion returns the first supported version in a webhook's reviewVersions; "" if there is none.
func reviewVersion(versions []string) string {
	for _, v := range versions {
		if v == "v1" || v == "v1beta1" {
			return v
		}
	}
	return ""
}

func targetOf(c *admissionregistrationv1.WebhookClientConfig) webhook.Target {
	t := webhook.Target{CABundle: string(c.CABundle)}
	if c.URL != nil {
		t.URL = *c.URL
	} else if s := c.Service; s != nil {
		t.Service = webhook.Service{Namespace: s.Namespace, Name: s.Name}
		if s.Path != nil {
			t.Service.Path = *s.Path
		}
		if s.Port != nil {
			t.Service.Port = *s.Port
		}
	}
	return t
}
