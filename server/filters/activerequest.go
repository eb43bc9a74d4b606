package filters

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/flow/seats"
	"github.com/rowlock/rowlock/server/request"
)

// activeRequest is a request with its seats. It wraps the writer of the answer and the body, so that it notices when the request
// waits for its client.
type activeRequest struct {
	http.ResponseWriter
	seats.Request
	ctx    context.Context
	scope  *request.Scope
	seats  *seats.Scheduler
	class  *flow.Class // nil without classification
	about  flow.About
	exempt bool
	began  time.Duration // when it got seats after a wait; without one, when it was prepared
}

// wrapBody notes the size of a request's body, at most largest, and wraps it so that the request returns its seats while the
// body is read.
func (t *activeRequest) wrapBody(r *http.Request, largest int64) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	if t.Size = r.ContentLength; t.Size < 0 || t.Size > largest {
		t.Size = largest
	}
	r.Body = &pausingBody{ReadCloser: r.Body, request: t, left: r.ContentLength}
}

// pausingBody is a body that its client still sends. Its request has no seats from the first read to the last.
type pausingBody struct {
	io.ReadCloser
	request *activeRequest
	left    int64 // bytes still to read; negative: unknown
	state   uint8
}

// States of a pausingBody.
const (
	unread uint8 = iota
	reading
	read
)

func (b *pausingBody) Read(p []byte) (int, error) {
	t := b.request
	if b.state == unread {
		b.state = reading
		t.seats.Pause(&t.Request)
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.state == reading && (err != nil || b.left == 0) {
		b.state = read
		if late := t.seats.Resume(t.ctx, &t.Request); late != nil && (err == nil || err == io.EOF) {
			err = late
		}
	}
	return n, err
}

// Unwrap serves http.ResponseController.
func (t *activeRequest) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write implements io.Writer.
func (t *activeRequest) Write(p []byte) (int, error) {
	t.seats.Sending(&t.Request)
	n, err := t.ResponseWriter.Write(p)
	return n, t.sent(err)
}

// FlushError serves http.ResponseController.
func (t *activeRequest) FlushError() error {
	t.seats.Sending(&t.Request)
	return t.sent(http.NewResponseController(t.ResponseWriter).Flush())
}

// sent ends a write. If the request lost its seats during it, it waits for others.
func (t *activeRequest) sent(err error) error {
	if t.scope.Taken != nil {
		t.scope.Taken()
	}
	if late := t.seats.Sent(t.ctx, &t.Request); err == nil {
		return late
	}
	return err
}
