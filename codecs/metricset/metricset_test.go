package metricset_test

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rowlock/rowlock/codecs/metricset"
)

// TestSet: a registry shows each metric of a Set, under its prefix, whether the Set or its metrics are registered.
func TestSet(t *testing.T) {
	s := metricset.New("some_")
	s.Counter("counter_total", "A counter.").Inc()
	s.Counters("counters_total", "Counters.", "a", "b").WithLabelValues("x", "y").Add(2)
	s.Gauge("gauge", "A gauge.").Set(3)
	s.Gauges("gauges", "Gauges.", "a").WithLabelValues("x").Set(4)
	s.Histogram("seconds", "A histogram.", []float64{1}).Observe(0.5)
	s.Histograms("sizes", "Histograms.", []float64{1}, "a").WithLabelValues("x").Observe(2)
	const want = `# HELP some_counter_total A counter.
# TYPE some_counter_total counter
some_counter_total 1
# HELP some_counters_total Counters.
# TYPE some_counters_total counter
some_counters_total{a="x",b="y"} 2
# HELP some_gauge A gauge.
# TYPE some_gauge gauge
some_gauge 3
# HELP some_gauges Gauges.
# TYPE some_gauges gauge
some_gauges{a="x"} 4
# HELP some_seconds A histogram.
# TYPE some_seconds histogram
some_seconds_bucket{le="1"} 1
some_seconds_bucket{le="+Inf"} 1
some_seconds_sum 0.5
some_seconds_count 1
# HELP some_sizes Histograms.
# TYPE some_sizes histogram
some_sizes_bucket{a="x",le="1"} 0
some_sizes_bucket{a="x",le="+Inf"} 1
some_sizes_sum{a="x"} 2
some_sizes_count{a="x"} 1
`
	for name, collectors := range map[string][]prometheus.Collector{"the set": {s}, "its metrics": s.Collectors()} {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(collectors...)
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
