#!/bin/sh
# github.com/prometheus/common v0.72.0, package expfmt, with github.com/prometheus/client_golang v1.25.0.
#
# Seen: expfmt writes OpenMetrics 1.0 and has no reader for it. ResponseFormat of such an answer is "unknown", and NewDecoder
# takes what is unknown, and OpenMetrics 1.0 by its name too, for the older text format. The counter arrives untyped, without
# an error. With one exemplar the answer cannot be read at all.
# Expected: an error that names the format, as NewDecoder has it for OpenMetrics 2.0.
# Who is hurt: Go programs that ask for OpenMetrics, as Prometheus does: what depends on types goes wrong silently, and reading
# fails on the day when a component starts to trace, because exemplars come with the traces.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

func main() {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "writes_total", Help: "Writes."})
	registry.MustRegister(counter)
	counter.Add(7)
	read(registry)
	counter.(prometheus.ExemplarAdder).AddWithExemplar(1, prometheus.Labels{"trace_id": "abc"})
	read(registry)
}

func read(registry *prometheus.Registry) {
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(answer, request)
	format := expfmt.ResponseFormat(answer.Header())
	fmt.Println(answer.Header().Get("Content-Type"), "is", format)
	body := answer.Body.Bytes()
	for _, format := range []expfmt.Format{format, expfmt.FmtOpenMetrics_1_0_0} {
		decoder := expfmt.NewDecoder(bytes.NewReader(body), format)
		for {
			var family dto.MetricFamily
			err := decoder.Decode(&family)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				fmt.Println(" error:", err)
				break
			}
			fmt.Printf(" %s %s, %d series\n", family.GetType(), family.GetName(), len(family.GetMetric()))
		}
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/prometheus/common@v0.72.0 github.com/prometheus/client_golang@v1.25.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores is <unknown>
 UNTYPED writes_total, 1 series
 UNTYPED writes_total, 1 series
application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores is <unknown>
 UNTYPED writes_total, 1 series
 error: text format parsing error in line 3: expected integer as timestamp, got "#"
 UNTYPED writes_total, 1 series
 error: text format parsing error in line 3: expected integer as timestamp, got "#"
EOF
diff want out
