// Package filters holds the HTTP middleware that every request passes before it reaches a
// verb, one filter a file. Package server puts them in order, in chain.go.
//
// They promise: a panic fails one request alone; credentials are removed from a request
// once they have been checked; a request that is not allowed reaches no handler.
package filters

import (
	"io"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// Filter wraps a handler. The function that it returns stays on the stack of every open
// watch whose handler stays. What is to be done when the request has ended goes to
// request.Scope.AtEnd where the answer goes on without its handler (Scope.Outlives), and is done
// when the next handler has returned otherwise. To keep its frame small, what a filter does
// before and after calling the next handler belongs into functions of its own.
type Filter func(http.Handler) http.Handler

// Recorder notes what was answered. Flush and Hijack reach the writer below through
// http.ResponseController.
type Recorder struct {
	http.ResponseWriter
	Code  int // 0 until the header is written
	Bytes int64

	scope *request.Scope // nil in tests, as conn is
	conn  wire.Conn
	http2 bool
	whole bool  // conn has been told that the answer is
	body  *sent // the client's; nil: none, or not over HTTP/1
}

// Whole says that the answer will be written to its end without a pause.
func (r *Recorder) Whole() {
	if r.conn != nil && !r.whole {
		r.whole = true
		r.conn.Cork()
	}
}

// How long a client has, when all has been said, to take the rest of an answer, and to
// send the rest of a body that nobody has read.
const (
	lastBytes = 30 * time.Second
	lastBody  = 5 * time.Second
)

// returned is called when the handler has, which may be before the end of the answer. It
// must be deferred.
func (r *Recorder) returned() {
	s := r.scope
	if s == nil || !s.Outlives() {
		r.done()
		return
	}
	p := recover()
	s.Returned(p)
	if p != nil {
		panic(p)
	}
}

// done ends what Whole began, and the patience with the client: what packages net/http
// and http2 still do for the request, they do without a deadline.
func (r *Recorder) done() {
	// Writers that know no deadlines are those of tests.
	switch {
	case r.conn == nil:
	case r.http2 && (r.conn.ID() == 0 || r.conn.MayBlock(r.Bytes)): // package net/http says nothing of its windows
		_ = http.NewResponseController(r.ResponseWriter).SetWriteDeadline(time.Now().Add(lastBytes))
	case r.body != nil && !r.body.all:
		_ = http.NewResponseController(r.ResponseWriter).SetReadDeadline(time.Now().Add(lastBody))
	}
	if !r.whole {
		return
	}
	if !r.http2 {
		// The rest of the answer still is with package net/http.
		_ = http.NewResponseController(r.ResponseWriter).Flush() // a client that has gone is told of nothing
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

// Count notes bytes of the answer that were written past it.
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
