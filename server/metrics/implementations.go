package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
)

// implementations counts the uses of each implementation of a function that has a fast path and a fallback.
type implementations map[string]prometheus.Counter

func newImplementations(s *metricset.Set, name, help string, names ...string) implementations {
	vec := s.Counters(name, help, "implementation")
	w := implementations{}
	for _, each := range names {
		w[each] = vec.WithLabelValues(each)
	}
	return w
}

// count counts a use; it ignores an unknown implementation.
func (w implementations) count(name string) {
	if c, ok := w[name]; ok {
		c.Inc()
	}
}

// Ownership is the Count of an ownership.Config.
func (m *Metrics) Ownership(implementation string) { m.ownership.count(implementation) }
