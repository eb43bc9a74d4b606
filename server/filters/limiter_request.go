package filters

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

// activeRequest is a request that a limiter let in. It wraps the writer of the answer and
// the body, and so knows when the request waits for its client.
type activeRequest struct {
	http.ResponseWriter
	ctx     context.Context
	limiter *limiter
	name    string // the user whose share it counts for
	master  bool   // the user is an administrator
	size    int64  // the most bytes that its body may have

	writing atomic.Int64 // when the write that is going on began, by limiter.now; 0: none is
	taken   atomic.Bool  // the place was taken during a write

	// Guarded by the mutex of limiter:
	usage *usage
	at    int           // index in running; -1: it has no place
	in    chan struct{} // closed when it has a place again; set while it waits for one
}

// wrapBody notes the size of a request's body, and wraps it so that the place is given back
// while the body is read.
func (t *activeRequest) wrapBody(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	if t.size = r.ContentLength; t.size < 0 || t.size > largestBody {
		t.size = largestBody
	}
	r.Body = &pausingBody{ReadCloser: r.Body, request: t, left: r.ContentLength}
}

// pausingBody is a body that its client is still sending. Its request has no place from the
// first read to the last.
type pausingBody struct {
	io.ReadCloser
	request *activeRequest
	left    int64 // bytes still to read; negative: unknown
	state   uint8
}

// States of such a body.
const (
	unread uint8 = iota
	reading
	read
)

func (b *pausingBody) Read(p []byte) (int, error) {
	t := b.request
	if b.state == unread {
		b.state = reading
		if t.usage != nil {
			t.limiter.pause(t)
		}
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.state == reading && (err != nil || b.left == 0) {
		b.state = read
		if t.usage == nil {
			return n, err
		}
		if late := t.limiter.resume(t.ctx, t); late != nil && (err == nil || err == io.EOF) {
			err = late
		}
	}
	return n, err
}

// Unwrap serves http.ResponseController.
func (t *activeRequest) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write implements io.Writer.
func (t *activeRequest) Write(p []byte) (int, error) {
	t.writing.Store(int64(t.limiter.now()))
	n, err := t.ResponseWriter.Write(p)
	return n, t.written(err)
}

// FlushError serves http.ResponseController.
func (t *activeRequest) FlushError() error {
	t.writing.Store(int64(t.limiter.now()))
	return t.written(http.NewResponseController(t.ResponseWriter).Flush())
}

// written ends a write. If the place was taken during it, the request waits for another.
func (t *activeRequest) written(err error) error {
	t.writing.Store(0)
	if t.taken.Load() {
		if late := t.limiter.resume(t.ctx, t); err == nil {
			return late
		}
	}
	return err
}
