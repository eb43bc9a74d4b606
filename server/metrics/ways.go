package metrics

import "github.com/prometheus/client_golang/prometheus"

// ways counts how often work took each of its ways, where there is a quick one of our own
// and a standard one of a library.
type ways map[string]prometheus.Counter

func newWays(name, help string, names ...string) (prometheus.Collector, ways) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"way"})
	w := ways{}
	for _, way := range names {
		w[way] = vec.WithLabelValues(way)
	}
	return vec, w
}

// took counts an implementation; it ignores one without a name.
func (w ways) took(way string) {
	if c, ok := w[way]; ok {
		c.Inc()
	}
}

// Ownership is the Count of an ownership.Config.
func (m *Metrics) Ownership(way string) { m.ownership.took(way) }
