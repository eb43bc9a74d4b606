package policy

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
)

const (
	labelPolicy  = "policy"
	labelBinding = "policy_binding"
)

// Metrics count the decisions of policies.
type Metrics struct {
	*metricset.Set
	count *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// NewMetrics returns metrics with the names of a stock server.
func NewMetrics() *Metrics {
	labels := []string{labelPolicy, labelBinding, "error_type", "enforcement_action"}
	s := metricset.New("apiserver_validating_admission_policy_")
	return &Metrics{
		Set:   s,
		count: s.Counters("check_total", "Validations that did not pass, by policy, binding and what was done about it.", labels...),
		took:  s.Histograms("check_duration_seconds", "Time of validations that did not pass, by policy, binding and what was done about it.", []float64{0.0000005, 0.001, 0.01, 0.1, 1}, labels...),
	}
}

// forget drops the series with a policy or binding, which is not there any more. A request that has not ended may bring one back.
func (m *Metrics) forget(label, name string) {
	if m != nil {
		m.count.DeletePartialMatch(prometheus.Labels{label: name})
		m.took.DeletePartialMatch(prometheus.Labels{label: name})
	}
}

func (m *Metrics) checked(policy, binding string, d *decision, action string) {
	if m == nil {
		return
	}
	sort := "invalid_error"
	switch {
	case strings.HasPrefix(d.message, "compilation"):
		sort = "compile_error"
	case strings.HasPrefix(d.message, "validation failed due to running out of cost budget"):
		sort = "out_of_budget"
	}
	m.count.WithLabelValues(policy, binding, sort, action).Inc()
	m.took.WithLabelValues(policy, binding, sort, action).Observe(d.took.Seconds())
}
