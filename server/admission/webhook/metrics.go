package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/admission"
)

// Metrics count the calls of webhooks. Both plugins share one.
type Metrics struct {
	*metricset.Set
	took                     *prometheus.HistogramVec
	calls, rejections, fails *prometheus.CounterVec
}

// NewMetrics returns metrics with the names of a stock server.
func NewMetrics() *Metrics {
	s := metricset.New("apiserver_admission_")
	return &Metrics{
		Set:        s,
		took:       s.Histograms("webhook_admission_duration_seconds", "Time of calls of webhooks.", []float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25}, "name", "type", "operation", "rejected"),
		calls:      s.Counters("webhook_request_total", "Calls of webhooks, by the code of the answer; codes over 600 count as 600, negative ones as 0.", "name", "type", "operation", "code", "rejected"),
		rejections: s.Counters("webhook_rejection_count", "Requests that webhooks, or failures to call them, have refused; codes over 600 count as 600, negative ones as 0.", "name", "type", "operation", "error_type", "rejection_code"),
		fails:      s.Counters("webhook_fail_open_count", "Failures to call webhooks that were let pass.", "name", "type"),
	}
}

// forget drops the series of a webhook that is not configured any more. A call that has not ended may bring one back.
func (m *Metrics) forget(name, phase string) {
	if m == nil {
		return
	}
	of := prometheus.Labels{"name": name, "type": phase}
	m.took.DeletePartialMatch(of)
	for _, vec := range []*prometheus.CounterVec{m.calls, m.rejections, m.fails} {
		vec.DeletePartialMatch(of)
	}
}

func (m *Metrics) called(name, phase string, op admission.Operation, took time.Duration, code int, rejected bool) {
	if m == nil {
		return
	}
	m.took.WithLabelValues(name, phase, string(op), strconv.FormatBool(rejected)).Observe(took.Seconds())
	m.calls.WithLabelValues(name, phase, string(op), codeLabel(code), strconv.FormatBool(rejected)).Inc()
}

func (m *Metrics) rejected(name, phase string, op admission.Operation, sort string, code int) {
	if m != nil {
		m.rejections.WithLabelValues(name, phase, string(op), sort, codeLabel(code)).Inc()
	}
}

// codeLabel returns the label of a code, which the webhook chose: the number of labels is bounded.
func codeLabel(code int) string { return strconv.Itoa(max(0, min(code, 600))) }

func (m *Metrics) failedOpen(name, phase string) {
	if m != nil {
		m.fails.WithLabelValues(name, phase).Inc()
	}
}
