package telemetry

import (
	"net/http"
	"net/http/pprof"
)

// Profiles returns the paths of --profiling, as on a stock server. Requests for them pass through all filters,
// authorization included.
func Profiles() map[string]http.Handler {
	paths := map[string]http.Handler{
		"/debug/pprof":         http.RedirectHandler("/debug/pprof/", http.StatusFound),
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
	}
	for _, name := range []string{"allocs", "block", "goroutine", "heap", "mutex", "threadcreate"} {
		paths["/debug/pprof/"+name] = pprof.Handler(name)
	}
	return paths
}
