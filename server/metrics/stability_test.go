package metrics_test

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/release"
)

func TestStability(t *testing.T) {
	registry := prometheus.NewRegistry()
	for _, name := range []string{
		"apiserver_request_total", "kubernetes_feature_enabled", "rowlock_any", "apiserver_flowcontrol_request_concurrency_in_use", "apiserver_flowcontrol_request_concurrency_limit",
	} {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "What it is."}))
	}
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "said", Help: "[STABLE] What it is."}), collectors.NewGoCollector())
	shown := func(s metrics.Selection) []string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(s.Of(registry), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return strings.Split(w.Body.String(), "\n")
	}
	usual, hidden := shown(metrics.Selection{}), shown(metrics.Selection{Hidden: true})
	for _, line := range []string{
		"# HELP apiserver_request_total [STABLE] What it is.", "# HELP kubernetes_feature_enabled [BETA] What it is.", "# HELP rowlock_any [ALPHA] What it is.",
		"# HELP said [STABLE] What it is.", "# HELP go_goroutines Number of goroutines that currently exist.",
	} {
		if !slices.Contains(usual, line) || !slices.Contains(hidden, line) {
			t.Errorf("there is no line %q", line)
		}
	}
	for _, line := range []string{
		"# HELP apiserver_flowcontrol_request_concurrency_in_use [ALPHA] (Deprecated from 1.31) What it is.", "apiserver_flowcontrol_request_concurrency_in_use 0",
		"# HELP apiserver_flowcontrol_request_concurrency_limit [ALPHA] (Deprecated from 1.30) What it is.",
	} {
		if slices.Contains(usual, line) || !slices.Contains(hidden, line) {
			t.Errorf("the line %q is not among those that are shown when asked for alone", line)
		}
	}
	for _, name := range []string{"workqueue_depth", "apiserver_storage_objects"} {
		registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "What it is."}))
	}
	for v, lines := range map[release.Version][]string{
		release.V132: {"# HELP workqueue_depth [ALPHA] What it is.", "# HELP apiserver_storage_objects [STABLE] What it is."},
		release.V133: {"# HELP workqueue_depth [BETA] What it is.", "# HELP apiserver_storage_objects [STABLE] (Deprecated from 1.34) What it is."},
	} {
		for _, line := range lines {
			if !slices.Contains(shown(metrics.Selection{Release: v}), line) {
				t.Errorf("release %v has no line %q", v, line)
			}
		}
	}
}
