package telemetry

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
)

// Profiles returns the paths of --profiling, as on a stock server: profiles, and flags that can change while the server runs.
// Requests for them pass through all filters, authorization included.
func Profiles(v *Verbosity, log *slog.Logger) map[string]http.Handler {
	return map[string]http.Handler{
		"/debug/pprof":         http.RedirectHandler("/debug/pprof/", http.StatusFound),
		"/debug/pprof/":        http.HandlerFunc(pprof.Index),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
		"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		"/debug/flags":         http.HandlerFunc(listFlags),
		"/debug/flags/":        http.HandlerFunc(listFlags),
		"/debug/flags/v":       v.Handler(log),
	}
}

// listFlags names the flags that can change.
func listFlags(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, "<html><head><title>/debug/flags/</title></head><body>flags:<table><tr><td>v</td></tr></table></body></html>\n") // an error means that the client has gone
}
