// Package metricset makes the Prometheus metrics of one part of a program, which are registered together.
package metricset

import "github.com/prometheus/client_golang/prometheus"

// Set is a prometheus.Collector of the metrics that it has made.
type Set struct {
	prefix string
	made   []prometheus.Collector
}

// New makes an empty Set. The names of its metrics begin with prefix.
func New(prefix string) *Set { return &Set{prefix: prefix} }

// Collectors returns the metrics one by one.
func (s *Set) Collectors() []prometheus.Collector { return s.made }

// Describe implements prometheus.Collector.
func (s *Set) Describe(to chan<- *prometheus.Desc) {
	for _, m := range s.made {
		m.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (s *Set) Collect(to chan<- prometheus.Metric) {
	for _, m := range s.made {
		m.Collect(to)
	}
}

func add[M prometheus.Collector](s *Set, m M) M {
	s.made = append(s.made, m)
	return m
}

// Counter makes a counter.
func (s *Set) Counter(name, help string) prometheus.Counter {
	return add(s, prometheus.NewCounter(prometheus.CounterOpts{Name: s.prefix + name, Help: help}))
}

// Counters makes a vector of counters.
func (s *Set) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return add(s, prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.prefix + name, Help: help}, labels))
}

// Gauge makes a gauge.
func (s *Set) Gauge(name, help string) prometheus.Gauge {
	return add(s, prometheus.NewGauge(prometheus.GaugeOpts{Name: s.prefix + name, Help: help}))
}

// Gauges makes a vector of gauges.
func (s *Set) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(s, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: s.prefix + name, Help: help}, labels))
}

// Histogram makes a histogram.
func (s *Set) Histogram(name, help string, buckets []float64) prometheus.Histogram {
	return add(s, prometheus.NewHistogram(prometheus.HistogramOpts{Name: s.prefix + name, Help: help, Buckets: buckets}))
}

// Histograms makes a vector of histograms.
func (s *Set) Histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return add(s, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: s.prefix + name, Help: help, Buckets: buckets}, labels))
}
