package telemetry

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"
)

// Verbosity is how much the process logs, which may change while it runs.
type Verbosity struct{ level slog.LevelVar }

// Set takes a value of -v: 0 shows warnings and messages for the operator, 1 information, 4 and above debug messages.
func (v *Verbosity) Set(n uint64) {
	level := slog.LevelWarn
	switch {
	case n >= 4:
		level = slog.LevelDebug
	case n >= 1:
		level = slog.LevelInfo
	}
	v.level.Set(level)
}

// longestVerbosity bounds the body of a request that changes the verbosity.
const longestVerbosity = 64

// Handler returns the handler of /debug/flags/v: a PUT sets the verbosity to the number in its body, with the answers of a stock
// server. log notes each change.
func (v *Verbosity) Handler(log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			plain(w, http.StatusNotAcceptable, "unsupported http method")
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestVerbosity))
		if err != nil {
			plain(w, http.StatusBadRequest, "error reading request body: "+err.Error())
			return
		}
		n, err := strconv.ParseUint(string(body), 10, 32)
		if err != nil {
			plain(w, http.StatusBadRequest, err.Error())
			return
		}
		v.Set(n)
		log.Warn("the verbosity of the log has been changed", "v", n)
		plain(w, http.StatusOK, "successfully set klog.logging.verbosity to "+string(body))
	})
}

func plain(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // an error means that the client has gone
}
