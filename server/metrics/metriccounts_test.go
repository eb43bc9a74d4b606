package metrics_test

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/metrics"
)

// TestCensus: registered metrics are counted, whether or not they have a value yet.
func TestCensus(t *testing.T) {
	m := metrics.New(kinds.NewCatalogue(nil), time.Now)
	m.Registry.MustRegister(
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_flowcontrol_request_concurrency_in_use", Help: `Hard to "read".`}, []string{"l"}),
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "said", Help: "[STABLE] It is."}, []string{"l"}),
	)
	shown := func() map[string]string {
		t.Helper()
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		found := map[string]string{}
		for _, line := range regexp.MustCompile(`(?m)^(registered|hidden|disabled)_metrics_total.*$`).FindAllString(w.Body.String(), -1) {
			name, value, _ := strings.Cut(line, " ")
			found[name] = value
		}
		if !strings.Contains(w.Body.String(), "# HELP hidden_metrics_total [BETA] ") {
			t.Error("hidden_metrics_total is not marked as beta")
		}
		return found
	}
	const stable, deprecated, hidden, disabled = `registered_metrics_total{deprecated_version="",stability_level="STABLE"}`, `registered_metrics_total{deprecated_version="1.31.0",stability_level="ALPHA"}`, `hidden_metrics_total`, `disabled_metrics_total`
	usual := shown()
	if usual[hidden] != "1" || usual[disabled] != "0" || usual[deprecated] != "" || usual[`registered_metrics_total{deprecated_version="",stability_level="BETA"}`] == "" {
		t.Errorf("usually: %v", usual)
	}
	m.Shown = metrics.Selection{Hidden: true}
	if all := shown(); all[hidden] != "0" || all[deprecated] != "1" || all[stable] != usual[stable] {
		t.Errorf("with hidden ones: %v, before that %v", all, usual)
	}
	m.Shown = metrics.Selection{Disabled: []string{"said", "nobody"}}
	if some := shown(); some[disabled] != "2" || some[hidden] != "2" || some[stable] == usual[stable] || some[stable] == "" {
		t.Errorf("with disabled ones: %v, before that %v", some, usual)
	}
}
