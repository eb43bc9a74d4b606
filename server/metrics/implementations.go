package metrics

import "github.com/prometheus/client_golang/prometheus"

// implementations counts the uses of each implementation of a function that has a fast path and a fallback.
type implementations map[string]prometheus.Counter

func newImplementations(name, help string, names ...string) (prometheus.Collector, implementations) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"way"})
	w := implementations{}
	for _, way := range names {
		w[way] = vec.WithLabelValues(way)
	}
	return vec, w
}

// count counts a use; it ignores an unknown implementation.
func (w implementations) count(way string) {
	if c, ok := w[way]; ok {
		c.Inc()
	}
}

// Ownership is the Count of an ownership.Config.
func (m *Metrics) Ownership(way string) { m.ownership.count(way) }
