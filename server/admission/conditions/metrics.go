package conditions

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/admission"
)

// Metrics count how match conditions end.
type Metrics struct {
	*metricset.Set
	took           *prometheus.HistogramVec
	faults, spared *prometheus.CounterVec
}

// NewMetrics returns metrics with the names of a stock server.
func NewMetrics() *Metrics {
	labels := []string{"name", "kind", "type", "operation"}
	s := metricset.New("apiserver_admission_match_condition_")
	return &Metrics{
		Set:    s,
		took:   s.Histograms("evaluation_seconds", "Time of match conditions.", []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}, labels...),
		faults: s.Counters("evaluation_errors_total", "Match conditions that could not be evaluated.", labels...),
		spared: s.Counters("exclusions_total", "Requests that match conditions kept from webhooks.", labels...),
	}
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
