// Package filters holds the HTTP middleware that every request passes before it reaches a
// verb, one filter a file. Package server puts them in order, in chain.go.
//
// A panic fails one request alone. Credentials are removed from a request once they have been checked. A request that is not
// allowed reaches no handler.
package filters

import (
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// Filter wraps a handler. The function that it returns stays on the stack of every open watch whose handler stays, so work
// before and after the next handler belongs into functions of its own, which keep the frame small. Work at the end of a
// request goes to request.Scope.AtEnd if the answer goes on without its handler (Scope.IsDetached), and otherwise is done when
// the next handler has returned.
type Filter func(http.Handler) http.Handler

// Recorder notes the status and size of the answer. Flush and Hijack reach the writer below through http.ResponseController.
type Recorder struct {
	http.ResponseWriter
	Code  int // 0 until the header is written
	Bytes int64

	scope *request.Scope // nil in tests, as conn is
	conn  wire.Conn
	http2 bool
	whole bool  // Whole was called, and conn is corked
	body  *sent // the request's body over HTTP/1; else nil
}

// Whole announces that the answer will be written to its end without a pause.
func (r *Recorder) Whole() {
	if r.conn != nil && !r.whole {
		r.whole = true
		r.conn.Cork()
	}
}

// How long a client has, after the handler, to read the rest of the answer, and to send the rest of a body that no handler has
// read.
const (
	lastBytes = 30 * time.Second
	lastBody  = 5 * time.Second
)

// returned must be deferred by the outermost filter: the handler has returned, which may be before the end of the answer.
func (r *Recorder) returned() {
	s := r.scope
	if s == nil || !s.IsDetached() {
		r.done()
		return
	}
	p := recover()
	s.Returned(p)
	if p != nil {
		panic(p)
	}
}

// done ends what Whole began, and sets deadlines for what packages net/http and http2 still do for the request, which they
// would do without one.
func (r *Recorder) done() {
	// Only writers of tests have no deadlines.
	switch {
	case r.conn == nil:
	case r.http2 && (r.conn.ID() == 0 || r.conn.MayBlock(r.Bytes)): // package net/http does not show its windows
		_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Now().Add(lastBytes))
	case r.body != nil && !r.body.all:
		_ = http.NewResponseController(r.ResponseWriter).SetReadDeadline(time.Now().Add(lastBody))
	}
	if !r.whole {
		return
	}
	if !r.http2 {
		// Package net/http still has the rest of the answer.
		_ = http.NewResponseController(r.ResponseWriter).Flush() // fails if the client has gone
	}
	r.conn.Uncork()
}

// sent is a body that a client sends over HTTP/1.
type sent struct {
	io.ReadCloser
	all bool // it has been read to its end
}

func (b *sent) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.all = b.all || err == io.EOF
	return n, err
}

// Unwrap serves http.ResponseController.
func (r *Recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(code int) {
	if r.Code == 0 && code >= 200 || code == http.StatusSwitchingProtocols {
		r.Code = code
		if len(r.Header()["Content-Length"]) > 0 {
			r.Whole()
		}
	}
	r.ResponseWriter.WriteHeader(code)
}

// Write implements io.Writer.
func (r *Recorder) Write(p []byte) (int, error) {
	if r.Code == 0 {
		r.Code = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.Bytes += int64(n)
	return n, err
}

// Count adds bytes of the answer that were written past the recorder.
func (r *Recorder) Count(bytes int64) { r.Bytes += bytes }

// recorderOf finds the recorder that Scope put around the writer.
func recorderOf(w http.ResponseWriter) *Recorder {
	for {
		switch t := w.(type) {
		case *Recorder:
			return t
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return &Recorder{ResponseWriter: w}
		}
	}
}

// Around puts filters of an embedding program around a handler, the first outermost. It returns nil without filters. They take
// the return of the handler for the end of the answer, so the handlers of watches stay.
func Around(list []Filter) Filter {
	if len(list) == 0 {
		return nil
	}
	return func(next http.Handler) http.Handler {
		h := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			request.From(r.Context()).ForbidDetach()
			next.ServeHTTP(w, r)
		}))
		for _, filter := range slices.Backward(list) {
			h = filter(h)
		}
		return h
	}
}
