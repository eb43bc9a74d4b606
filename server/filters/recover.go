package filters

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/rowlock/rowlock/server/ratelog"
	"github.com/rowlock/rowlock/server/request"
)

// Recover turns a panic into a 500, where nothing was sent yet, and otherwise into
// a broken connection, so that the client does not take a part for the whole.
func Recover(log *slog.Logger, panicked func()) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if p := recover(); p != nil {
					recovered(log, panicked, w, r, p)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

func recovered(log *slog.Logger, panicked func(), w http.ResponseWriter, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		request.From(r.Context()).Aborted = true
		panic(p) // somebody wants the connection cut
	}
	panicked()
	log.Error("panic while serving a request", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	rec := recorderOf(w)
	if rec.Code != 0 {
		request.From(r.Context()).Aborted = true
		panic(http.ErrAbortHandler)
	}
	http.Error(w, "This request caused apiserver to panic. Look in the logs for details.", http.StatusInternalServerError)
}

// failuresLogged are the lines a minute about requests that failed with a 5xx. Strangers
// can make as many such requests as they like while, say, nobody can decide about them.
const failuresLogged = 100

// AccessLog writes one line a request, at debug level unless it failed with a 5xx
// on a path that is not known to do so.
func AccessLog(log *slog.Logger, mayFail func(path string) bool) Filter {
	failed := &ratelog.Line{Most: failuresLogged}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			logAccess(log, failed, mayFail, w, r)
		})
	}
}

func logAccess(log *slog.Logger, failed *ratelog.Line, mayFail func(path string) bool, w http.ResponseWriter, r *http.Request) {
	level := slog.LevelDebug
	rec := recorderOf(w)
	if rec.Code >= 500 && rec.Code != http.StatusGatewayTimeout && !mayFail(r.URL.Path) {
		level = slog.LevelWarn
	}
	if !log.Enabled(r.Context(), level) {
		return
	}
	s := request.From(r.Context())
	user := ""
	if s.User != nil {
		user = s.User.Name
	}
	args := []any{"verb", s.Info.Verb, "uri", brief(r.URL.RequestURI()), "code", rec.Code, "bytes", rec.Bytes,
		"user", user, "agent", brief(r.UserAgent()), "from", r.RemoteAddr, "audit_id", s.ID}
	if level == slog.LevelDebug {
		log.DebugContext(r.Context(), "request", args...)
		return
	}
	failed.Log(r.Context(), log, level, "request", args...)
}

// brief is what the log shows of what a client can make as long as a request's head.
func brief(text string) string {
	const most = 2048
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
