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
				if s := request.From(r.Context()); s.Outlives() {
					recoverAtEnd(log, panicked, s, r.Method)
				} else if p := recover(); p != nil {
					recovered(log, panicked, w, r, p)
				}
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// recoverAtEnd does for an answer that goes on without its handler what recovered does for
// others. It has begun.
func recoverAtEnd(log *slog.Logger, panicked func(), s *request.Scope, method string) {
	s.AtEnd(func() {
		if p := s.Panicked(); p != nil {
			abort(log, panicked, s, method, p)
		}
	})
}

// abort has an answer that has begun broken off.
func abort(log *slog.Logger, panicked func(), s *request.Scope, method string, p any) {
	s.Aborted = true
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // somebody wants the connection cut
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
			returned(log, failed, mayFail, w, r)
		})
	}
}

// returned writes the line of a request whose handler has returned, or has that done at its
// end. What an answer that goes on was is known by then.
func returned(log *slog.Logger, failed *ratelog.Line, mayFail func(path string) bool, w http.ResponseWriter, r *http.Request) {
	s := request.From(r.Context())
	switch {
	case !s.Outlives():
		logAccess(log, failed, mayFail, w, r)
	case log.Enabled(r.Context(), slog.LevelDebug):
		s.AtEnd(func() {
			if s.Panicked() == nil {
				logAccess(log, failed, mayFail, w, r)
			}
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
