package aggregator

import "github.com/prometheus/client_golang/prometheus"

// turn is the reason for which an APIService became unavailable.
type turn struct{ name, reason string }

var (
	unavailableDesc = prometheus.NewDesc("aggregator_unavailable_apiservice",
		"[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.", []string{"name"}, nil)
	unavailableTotalDesc = prometheus.NewDesc("aggregator_unavailable_apiservice_total",
		"[ALPHA] Counter of APIServices which are marked as unavailable broken down by APIService name and reason.", []string{"name", "reason"}, nil)
)

// Describe implements prometheus.Collector.
func (a *Aggregator) Describe(ch chan<- *prometheus.Desc) {
	ch <- unavailableDesc
	ch <- unavailableTotalDesc
}

// Collect implements prometheus.Collector.
func (a *Aggregator) Collect(ch chan<- prometheus.Metric) {
	for _, s := range a.Services().All() {
		down := 0.0
		if s.Spec.Service != nil && !a.Available(s) {
			down = 1
		}
		ch <- prometheus.MustNewConstMetric(unavailableDesc, prometheus.GaugeValue, down, s.Name)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for t, n := range a.turned {
		ch <- prometheus.MustNewConstMetric(unavailableTotalDesc, prometheus.CounterValue, float64(n), t.name, t.reason)
	}
}
