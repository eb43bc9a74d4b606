// Package scrape serves metrics.
//
// It promises: what clients cost at once is bounded, whatever they send and however slowly they read.
package scrape

import (
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// most is the number of scrapes at once. Each holds a copy of all metrics until its client has read the answer.
const most = 10

// maxClauses is the number of clauses of an Accept header that are read. The library takes a hundred bytes for each, of which a
// header may have half a million.
const maxClauses = 256

// Handler serves metrics in the format of the Accept header; 503 beyond the number of scrapes at once.
func Handler(metrics prometheus.Gatherer) http.Handler {
	h := promhttp.HandlerFor(metrics, promhttp.HandlerOpts{MaxRequestsInFlight: most})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); len(accept) > maxClauses {
			r = r.WithContext(r.Context()) // a copy
			r.Header = maps.Clone(r.Header)
			r.Header.Set("Accept", clauses(accept))
		}
		h.ServeHTTP(w, r)
	})
}

// clauses returns the clauses of an Accept header that are read.
func clauses(accept string) string {
	n := 0
	for i := range len(accept) {
		if accept[i] != ',' {
			continue
		}
		if n++; n == maxClauses {
			return accept[:i]
		}
	}
	return accept
}
