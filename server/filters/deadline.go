package filters

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/request"
)

// Fail answers a request with an error.
type Fail func(w http.ResponseWriter, r *http.Request, err error)

// LongRunning reports whether a request may last: watches, and connections to pods, nodes, services and the like of aggregated
// servers.
func LongRunning(i *request.Info) bool {
	if i.Upgrade {
		return true
	}
	if !i.IsResource {
		return false
	}
	if i.Verb == "watch" || i.Verb == "proxy" {
		return true
	}
	switch i.Subresource {
	case "attach", "exec", "proxy", "portforward", "log":
		return true
	}
	return false
}

// Deadline bounds the time of a request by its timeout parameter, and by limit. Long-running requests have no deadline.
func Deadline(limit time.Duration, fail Fail) Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if LongRunning(request.From(r.Context()).Info) {
				next.ServeHTTP(w, r)
				return
			}
			bounded(next, limit, fail, w, r)
		})
	}
}

func bounded(next http.Handler, limit time.Duration, fail Fail, w http.ResponseWriter, r *http.Request) {
	scope := request.From(r.Context())
	if text := scope.Info.Query.Get("timeout"); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil {
			fail(w, r, apierrors.NewBadRequest("invalid timeout specified in the request URL - "+err.Error()))
			return
		}
		if asked > 0 && asked < limit {
			limit = asked
		}
	}
	t := &deadlineWriter{ResponseWriter: w, scope: scope, one: r.ProtoMajor == 1}
	t.ctx.Context, t.ctx.at = r.Context(), time.Now().Add(limit)
	defer t.ctx.end()
	timer := time.AfterFunc(limit, t.cut)
	next.ServeHTTP(t, r.WithContext(&t.ctx))
	if !timer.Stop() {
		t.end()
	}
}

const timeoutBody = `{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}` + "\n"

// deadlineWriter replaces an answer that begins after the deadline.
type deadlineWriter struct {
	http.ResponseWriter
	ctx   lazyDeadline
	scope *request.Scope
	one   bool // HTTP/1
	late  bool

	mu                sync.Mutex
	begun, done, tied bool
}

// lateAnswerTimeout is the time that a client has to read the answer after the deadline.
const lateAnswerTimeout = 2 * time.Second

// cut frees a handler that waits for its client to send the body or to read the answer.
func (w *deadlineWriter) cut() {
	<-w.ctx.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done || !errors.Is(w.ctx.Err(), context.DeadlineExceeded) {
		return
	}
	w.tied = true
	c := http.NewResponseController(w.ResponseWriter)
	// Only writers of tests have no deadlines.
	if !w.begun {
		// Over HTTP/1 this ends the connection: package net/http cancels all later requests on it. So an answer that has begun
		// does not do it, and the answer that follows announces the close.
		_ = c.SetReadDeadline(time.Now())
	}
	_ = c.SetWriteDeadline(time.Now().Add(lateAnswerTimeout))
}

// end removes the deadlines from the connection.
func (w *deadlineWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = true
	if w.tied {
		// The next request on the connection sets its own.
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

func (w *deadlineWriter) begin() {
	if !w.first() {
		return
	}
	w.late, w.scope.Terminated = true, http.StatusGatewayTimeout
	h := w.Header()
	h.Del("Content-Length")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if w.one {
		h.Set("Connection", "close")
	}
	if a := w.scope.Audit; a != nil {
		a.ResponseStatus(&metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout, Code: http.StatusGatewayTimeout,
			Message: "Timeout: request did not complete within the allotted timeout", Details: &metav1.StatusDetails{},
		})
	}
	w.ResponseWriter.WriteHeader(http.StatusGatewayTimeout)
	_, _ = io.WriteString(w.ResponseWriter, timeoutBody)
}

// first begins the answer, and reports whether that was after the deadline.
func (w *deadlineWriter) first() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun {
		return false
	}
	w.begun = true
	return errors.Is(w.ctx.Err(), context.DeadlineExceeded)
}

// WriteHeader implements http.ResponseWriter.
func (w *deadlineWriter) WriteHeader(code int) {
	if w.begin(); !w.late {
		w.ResponseWriter.WriteHeader(code)
	}
}

// Write implements io.Writer.
func (w *deadlineWriter) Write(b []byte) (int, error) {
	if w.begin(); w.late {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (w *deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// lazyDeadline is a context with a deadline, as context.WithDeadline makes it. Most requests never wait for anything, so it starts
// its timer and follows its parent only when Done is called for the first time.
type lazyDeadline struct {
	context.Context // parent
	at              time.Time

	mu     sync.Mutex
	real   context.Context // set once, by the first Done or by end
	isMade atomic.Bool     // real is set; most requests ask Err alone, at each of their steps
	cancel context.CancelFunc
}

// ended is a context that has ended.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// end ends the context.
func (u *lazyDeadline) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.cancel != nil:
		u.cancel()
	case u.real == nil:
		u.real = ended
		u.isMade.Store(true)
	}
}

// Deadline implements context.Context.
func (u *lazyDeadline) Deadline() (time.Time, bool) { return u.at, true }

// Done implements context.Context.
func (u *lazyDeadline) Done() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.real == nil {
		u.real, u.cancel = context.WithDeadline(u.Context, u.at)
		u.isMade.Store(true)
	}
	return u.real.Done()
}

// made returns the context with a timer, or ended; nil if neither Done nor end was called.
func (u *lazyDeadline) made() context.Context {
	if u.isMade.Load() {
		return u.real
	}
	return nil
}

// Err implements context.Context.
func (u *lazyDeadline) Err() error {
	if real := u.made(); real != nil {
		return real.Err()
	}
	if err := u.Context.Err(); err != nil {
		return err
	}
	if time.Now().Before(u.at) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value implements context.Context. Contexts derived from this one look up here what cancels them.
func (u *lazyDeadline) Value(key any) any {
	if real := u.made(); real != nil && real != ended {
		return real.Value(key)
	}
	return u.Context.Value(key)
}
