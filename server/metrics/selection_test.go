package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rowlock/rowlock/server/metrics"
)

func TestSelection(t *testing.T) {
	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests_total", Help: "h"}, []string{"verb", "code"})
	times := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "times", Help: "h", Buckets: []float64{1, 2}}, []string{"verb"})
	open := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "open", Help: "h"}, []string{"verb"})
	registry.MustRegister(requests, times, open)
	for i, verb := range []string{"GET", "LIST", "PUT", "POST"} {
		requests.WithLabelValues(verb, "200").Add(float64(i + 1))
		times.WithLabelValues(verb).Observe(float64(i))
		open.WithLabelValues(verb).Set(7)
	}
	s := metrics.Selection{Disabled: []string{"open"}, Allowed: map[string][]string{
		"requests_total,verb": {"GET", "LIST"}, "times,verb": {"PUT"}, "other,verb": {"x"},
	}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	want := `# HELP requests_total [ALPHA] h
# TYPE requests_total counter
requests_total{code="200",verb="GET"} 1
requests_total{code="200",verb="LIST"} 2
requests_total{code="200",verb="unexpected"} 7
# HELP times [ALPHA] h
# TYPE times histogram
times_bucket{verb="PUT",le="1"} 0
times_bucket{verb="PUT",le="2"} 1
times_bucket{verb="PUT",le="+Inf"} 1
times_sum{verb="PUT"} 2
times_count{verb="PUT"} 1
times_bucket{verb="unexpected",le="1"} 2
times_bucket{verb="unexpected",le="2"} 2
times_bucket{verb="unexpected",le="+Inf"} 3
times_sum{verb="unexpected"} 4
times_count{verb="unexpected"} 3
`
	for range 2 { // gathering does not change later results
		w := httptest.NewRecorder()
		promhttp.HandlerFor(s.Of(registry), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Error(diff)
		}
	}
	if families, err := (&metrics.Selection{}).Of(registry).Gather(); err != nil || len(families) != 3 || len(families[1].Metric) != 4 {
		t.Error(families, err)
	}
	for _, key := range []string{"requests_total", "requests_total,", "a,b,c", "a,b-c", ",verb"} {
		s := metrics.Selection{Allowed: map[string][]string{key: {"x"}}}
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--allow-metric-labels must have a list of kv pair") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
