package conditions

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/admission"
)

// Metrics count how match conditions end.
type Metrics struct {
	took           *prometheus.HistogramVec
	faults, spared *prometheus.CounterVec
}

// NewMetrics returns metrics with the names of a stock server.
func NewMetrics() *Metrics {
	labels := []string{"name", "kind", "type", "operation"}
	return &Metrics{
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_admission_match_condition_evaluation_seconds", Help: "Time of match conditions.",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25},
		}, labels),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_match_condition_evaluation_errors_total", Help: "Match conditions that could not be evaluated.",
		}, labels),
		spared: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_match_condition_exclusions_total", Help: "Requests that match conditions kept from webhooks.",
		}, labels),
	}
}

// Collectors returns the metrics to register.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.took, m.faults, m.spared}
}

// Forget drops the series of a webhook or policy that is not there any more. A request that has not ended may bring one back.
func (m *Metrics) Forget(of Owner) {
	if m == nil {
		return
	}
	labels := prometheus.Labels{"name": of.Name, "kind": of.Kind, "type": of.Phase}
	m.took.DeletePartialMatch(labels)
	m.faults.DeletePartialMatch(labels)
	m.spared.DeletePartialMatch(labels)
}

func (m *Metrics) observe(of Owner, op admission.Operation, took time.Duration, faults int) {
	m.took.WithLabelValues(of.Name, of.Kind, of.Phase, string(op)).Observe(took.Seconds())
	if faults > 0 {
		m.faults.WithLabelValues(of.Name, of.Kind, of.Phase, string(op)).Add(float64(faults))
	}
}

// Excluded counts a request that match conditions excluded from a webhook.
func (m *Metrics) Excluded(of Owner, op admission.Operation) {
	if m != nil {
		m.spared.WithLabelValues(of.Name, of.Kind, of.Phase, string(op)).Inc()
	}
}
