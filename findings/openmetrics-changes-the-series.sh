#!/bin/sh
# github.com/prometheus/client_golang v1.22.0 (promhttp with EnableOpenMetrics).
#
# Seen: one registry gives different series to two scrapers. For a scraper that accepts
# OpenMetrics the label of a bucket is le="1.0", for one that accepts the text format
# le="1" (but le="1e+06" in both); and a counter whose name lacks "_total" has the type
# "unknown" in the one and "counter" in the other. Only the Accept header differs.
# Expected: one process, one set of series, whatever the encoding.
# Who is hurt: whoever turns OpenMetrics on, or moves to a scraper that asks for it: rules
# and dashboards with le="1" match nothing, and histogram_quantile over the time of the
# change sees both labels at once. Which buckets are affected depends on their size.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		prometheus.NewCounter(prometheus.CounterOpts{Name: "jobs"}),
		prometheus.NewHistogram(prometheus.HistogramOpts{Name: "size", Buckets: []float64{1, 2.5, 1e6}}))
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
	for _, accept := range []string{"text/plain", "application/openmetrics-text;version=1.0.0"} {
		request := httptest.NewRequest("GET", "/", nil)
		request.Header.Set("Accept", accept)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		fmt.Println(accept)
		for line := range strings.Lines(answer.Body.String()) {
			if strings.Contains(line, "le=") || strings.HasPrefix(line, "# TYPE jobs") {
				fmt.Print("  ", line)
			}
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/prometheus/client_golang@v1.22.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
text/plain
  # TYPE jobs counter
  size_bucket{le="1"} 0
  size_bucket{le="2.5"} 0
  size_bucket{le="1e+06"} 0
  size_bucket{le="+Inf"} 0
application/openmetrics-text;version=1.0.0
  # TYPE jobs unknown
  size_bucket{le="1.0"} 0
  size_bucket{le="2.5"} 0
  size_bucket{le="1e+06"} 0
  size_bucket{le="+Inf"} 0
EOF
diff want out
