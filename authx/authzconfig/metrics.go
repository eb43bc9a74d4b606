package authzconfig

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/codecs/metricset"
)

// Metrics are the figures of authorization, named as a stock server's. It is the Observer of webhooks.
type Metrics struct {
	*metricset.Set
	decisions, evaluations, open, failures, exclusions *prometheus.CounterVec
	took, matched                                      *prometheus.HistogramVec
}

// NewMetrics starts all figures at nothing.
func NewMetrics() *Metrics {
	s := metricset.New("apiserver_authorization_")
	return &Metrics{
		Set:         s,
		decisions:   s.Counters("decisions_total", "Requests that an authorizer allowed or denied.", "type", "name", "decision"),
		evaluations: s.Counters("webhook_evaluations_total", "Round trips to authorization webhooks, by how they went.", "name", "result"),
		open:        s.Counters("webhook_evaluations_fail_open_total", "Failures of authorization webhooks that left the decision to others.", "name", "result"),
		took:        s.Histograms("webhook_duration_seconds", "How long round trips to authorization webhooks took.", prometheus.DefBuckets, "name", "result"),
		failures:    s.Counters("match_condition_evaluation_errors_total", "Requests for which match conditions of an authorizer failed.", "type", "name"),
		exclusions:  s.Counters("match_condition_exclusions_total", "Requests that match conditions kept from an authorizer.", "type", "name"),
		matched:     s.Histograms("match_condition_evaluation_seconds", "How long the match conditions of an authorizer took.", []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}, "type", "name"),
	}
}

// Evaluated implements webhook.Observer.
func (m *Metrics) Evaluated(name, result string, took time.Duration) {
	m.evaluations.WithLabelValues(name, result).Inc()
	m.took.WithLabelValues(name, result).Observe(took.Seconds())
}

// FailedOpen implements webhook.Observer.
func (m *Metrics) FailedOpen(name, result string) { m.open.WithLabelValues(name, result).Inc() }

// Matched implements webhook.Observer.
func (m *Metrics) Matched(name string, took time.Duration, excluded bool, err error) {
	m.matched.WithLabelValues(TypeWebhook, name).Observe(took.Seconds())
	if err != nil {
		m.failures.WithLabelValues(TypeWebhook, name).Inc()
	}
	if excluded {
		m.exclusions.WithLabelValues(TypeWebhook, name).Inc()
	}
}

// counted counts the decisions of an authorizer. No opinion is not a decision. A series exists from its first
// decision on.
type counted struct {
	next            authx.Authorizer
	allowed, denied func() prometheus.Counter
}

func (m *Metrics) count(a *Authorizer, next authx.Authorizer) authx.Authorizer {
	if m == nil {
		return next
	}
	series := func(decision string) func() prometheus.Counter {
		kind, name := a.Type, a.Name
		return sync.OnceValue(func() prometheus.Counter { return m.decisions.WithLabelValues(kind, name, decision) })
	}
	return &counted{next: next, allowed: series("allowed"), denied: series("denied")}
}

// Authorize implements authx.Authorizer.
func (c *counted) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	d, reason, err := c.next.Authorize(ctx, a)
	switch d {
	case authx.Allow:
		c.allowed().Inc()
	case authx.Deny:
		c.denied().Inc()
	}
	return d, reason, err
}
