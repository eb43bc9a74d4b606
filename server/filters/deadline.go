package filters

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/request"
)

// Fail answers a request with an error.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// LongRunning says whether a request may last: watches, and connections to pods,
// nodes and services.
func LongRunning(i *request.Info) bool {
	if !i.IsResource {
		return false
	}
	if i.Verb == "watch" || i.Verb == "proxy" {
		return true
	}
	switch i.Subresource {
	case "attach", "exec", "proxy", "portforward":
		return true
	case "log":
		return i.Query.Get("follow") == "true" || i.Query.Get("follow") == "1"
	}
	return false
}

// Deadline bounds how long a request may take, as its timeout parameter asks for
// but never longer than limit. Long-running requests have no deadline.
func Deadline(limit time.Duration, fail Fail) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			info := request.From(r.Context()).Info
			if LongRunning(info) {
				next.ServeHTTP(w, r)
				return
			}
			d := limit
			if text := info.Query.Get("timeout"); text != "" {
				asked, err := time.ParseDuration(text)
				if err != nil {
					fail(w, r, apierrors.NewBadRequest("invalid timeout specified in the request URL - "+err.Error()))
					return
				}
				if asked > 0 && asked < d {
					d = asked
				}
			}
			ctx, cancel := context.WithTimeout(r.Context(), d)
			defer cancel()
			next.ServeHTTP(&timely{ResponseWriter: w, ctx: ctx}, r.WithContext(ctx))
		})
	}
}

const tooLate = `{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}` + "\n"

// timely replaces an answer that begins after the deadline.
type timely struct {
	http.ResponseWriter
	ctx         context.Context
	begun, late bool
}

func (w *timely) begin() {
	if w.begun {
		return
	}
	w.begun = true
	if !errors.Is(w.ctx.Err(), context.DeadlineExceeded) {
		return
	}
	w.late = true
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.ResponseWriter.WriteHeader(http.StatusGatewayTimeout)
	_, _ = io.WriteString(w.ResponseWriter, tooLate)
}

// WriteHeader implements http.ResponseWriter.
func (w *timely) WriteHeader(code int) {
	if w.begin(); !w.late {
		w.ResponseWriter.WriteHeader(code)
	}
}

// Write implements io.Writer.
func (w *timely) Write(b []byte) (int, error) {
	if w.begin(); w.late {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (w *timely) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// EndWith ends long-running requests when ctx does: a server that drains lets
// watches finish what they are sending, and no more.
func EndWith(end context.Context) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !LongRunning(request.From(r.Context()).Info) {
				next.ServeHTTP(w, r)
				return
			}
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(end, cancel)()
			next.ServeHTTP(w, r.WithContext(ctx))
		})
	}
}
