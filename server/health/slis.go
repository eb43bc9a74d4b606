package health

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/codecs/metricset"
	"github.com/rowlock/rowlock/server/metrics/scrape"
)

// slis are the results of checks as /metrics/slis shows them: how each ended last,
// and how often it ended how.
type slis struct {
	last    *prometheus.GaugeVec
	results *prometheus.CounterVec
	handler http.Handler
}

func newSLIs() slis {
	m := metricset.New("kubernetes_")
	s := slis{
		last:    m.Gauges("healthcheck", "[STABLE] Whether a health check was well when it was asked last.", "name", "type"),
		results: m.Counters("healthchecks_total", "[STABLE] Results of health checks: success, error.", "name", "type", "status"),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	s.handler = scrape.Handler(registry)
	return s
}

func (s slis) observe(group, check string, well bool) {
	value, status := 1.0, "success"
	if !well {
		value, status = 0, "error"
	}
	s.last.WithLabelValues(check, group).Set(value)
	s.results.WithLabelValues(check, group, status).Inc()
}

// SLIs serves the results of checks as metrics.
func (c *Checks) SLIs() http.Handler { return c.slis.handler }
