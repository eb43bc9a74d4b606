#!/bin/sh
# github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 (content negotiation of the API server and of
# Prometheus' client libraries), github.com/prometheus/client_golang v1.25.0.
#
# Seen: a media type with q=0 in Accept is offered like any other, and if "*/*" stands before a media type of a smaller q,
# the smaller q wins: "*/*, application/json;q=0.1" gives JSON, in the other order the server's choice. The
# comparison of the sort puts each of two such members before the other.
# Expected: RFC 9110, section 12.4.2: q=0 is "not acceptable", and 12.5.1: the order of members has no meaning.
# Who is hurt: clients that exclude a form which they cannot read: a scraper that accepts everything but OpenMetrics
# gets OpenMetrics, and one that refuses JSON from an API gets JSON instead of 406.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/munnerz/goautoneg"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	for _, accept := range []string{
		"application/json;q=0.1, */*", "*/*, application/json;q=0.1", "*/*, application/json;q=0", "application/json;q=0",
	} {
		fmt.Printf("%s: %q\n", accept, goautoneg.Negotiate(accept, []string{"application/yaml", "application/json"}))
	}
	handler := promhttp.HandlerFor(prometheus.NewRegistry(), promhttp.HandlerOpts{EnableOpenMetrics: true})
	for _, accept := range []string{"*/*", "*/*, application/openmetrics-text;version=1.0.0;q=0"} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Printf("promhttp, %s: %q\n", accept, w.Header().Get("Content-Type"))
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/munnerz/goautoneg@v0.0.0-20191010083416-a7dc8b61c822 github.com/prometheus/client_golang@v1.25.0 2>/dev/null
go run -mod=mod . | tee out
cat >want <<'EOF'
application/json;q=0.1, */*: "application/yaml"
*/*, application/json;q=0.1: "application/json"
*/*, application/json;q=0: "application/json"
application/json;q=0: "application/json"
promhttp, */*: "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
promhttp, */*, application/openmetrics-text;version=1.0.0;q=0: "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
EOF
diff want out
