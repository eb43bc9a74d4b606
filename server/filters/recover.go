package filters

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/rowlock/rowlock/server/ratelog"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/status"
)

// Recover turns a panic into a 500 if nothing was sent yet, and else aborts the answer, so that the client does not take a part
// of it for the whole.
func Recover(log *slog.Logger, panicked func()) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if s := request.From(r.Context()); s.IsDetached() {
					recoverAtEnd(log, panicked, s, r.Method)
				} else if p := recover(); p != nil {
					recovered(log, panicked, w, r, p)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// recoverAtEnd is recovered for an answer that goes on without its handler. The answer has begun.
func recoverAtEnd(log *slog.Logger, panicked func(), s *request.Scope, method string) {
	s.AtEnd(func() {
		if p := s.Panicked(); p != nil {
			abort(log, panicked, s, method, p)
		}
	})
}

// abort aborts an answer that has begun.
func abort(log *slog.Logger, panicked func(), s *request.Scope, method string, p any) {
	s.Aborted = true
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // the handler wants the connection closed
	}
	panicked()
	logPanic(log, s, method, p)
	panic(http.ErrAbortHandler)
}

func logPanic(log *slog.Logger, s *request.Scope, method string, p any) {
	log.Error("panic while serving a request", "method", method, "path", s.Info.Path, "panic", p, "stack", string(debug.Stack()))
}

func recovered(log *slog.Logger, panicked func(), w http.ResponseWriter, r *http.Request, p any) {
	s := request.From(r.Context())
	if err, ok := p.(error); recorderOf(w).Code != 0 || ok && errors.Is(err, http.ErrAbortHandler) {
		abort(log, panicked, s, r.Method, p)
	}
	panicked()
	logPanic(log, s, r.Method, p)
	http.Error(w, "This request caused apiserver to panic. Look in the logs for details.", http.StatusInternalServerError)
}

// failuresLogged bounds the lines a minute about requests that failed with a 5xx. While an authorizer fails, for example, any
// client can cause any number of them.
const failuresLogged = 100

// AccessLog logs each request, at debug level unless it failed with an unexpected 5xx.
func AccessLog(log *slog.Logger, mayFail func(path string) bool) Filter {
	failed := &ratelog.Line{Most: failuresLogged}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			returned(log, failed, mayFail, w, r)
		})
	}
}

// returned logs a request after its handler has returned, or at its end if it outlives the handler. Its status is known by
// then.
func returned(log *slog.Logger, failed *ratelog.Line, mayFail func(path string) bool, w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	switch {
	case !s.IsDetached():
		logAccess(log, failed, mayFail, w, r)
	case log.Enabled(r.Context(), slog.LevelDebug):
		s.AtEnd(func() {
			if s.Panicked() == nil {
				logAccess(log, failed, mayFail, w, r)
			}
		})
	}
}

// longestShown bounds the texts of a client in a log line, which may be as long as the head of a request.
const longestShown = 2048

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
	args := []any{"verb", s.Info.Verb, "uri", status.Brief(r.URL.RequestURI(), longestShown), "code", rec.Code, "bytes", rec.Bytes,
		"user", user, "agent", status.Brief(r.UserAgent(), longestShown), "from", r.RemoteAddr, "audit_id", s.ID}
	if level == slog.LevelDebug {
		log.DebugContext(r.Context(), "request", args...)
		return
	}
	failed.Log(r.Context(), log, level, "request", args...)
}
