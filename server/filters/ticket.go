package filters

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
)

// ticket is a request with a place among those that run. It is the writer of its answer
// and the reader of its body, and so knows when it waits for its client.
type ticket struct {
	http.ResponseWriter
	ctx    context.Context
	slots  *slots
	name   string // whose share it takes from
	master bool
	size   int64 // that its body may have

	writing atomic.Int64 // since when a write lasts, as slots.now says; 0: none does
	taken   atomic.Bool  // the place, meanwhile

	// Guarded by the mutex of slots:
	usage *usage
	at    int           // among those that run; -1: it does not
	in    chan struct{} // closed when it may go on, while it waits for that
}

// carry puts the ticket around the request's body.
func (t *ticket) carry(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	if t.size = r.ContentLength; t.size < 0 || t.size > largestBody {
		t.size = largestBody
	}
	r.Body = &awaited{ReadCloser: r.Body, ticket: t, left: r.ContentLength}
}

// awaited is a body that a client is still sending: while it is read, its request does
// not run.
type awaited struct {
	io.ReadCloser
	ticket *ticket
	left   int64 // bytes; less than zero: who knows
	state  uint8
}

// States of an awaited body.
const (
	unread uint8 = iota
	reading
	read
)

func (b *awaited) Read(p []byte) (int, error) {
	t := b.ticket
	if b.state == unread {
		b.state = reading
		if t.usage != nil {
			t.slots.pause(t)
		}
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.state == reading && (err != nil || b.left == 0) {
		b.state = read
		if t.usage == nil {
			return n, err
		}
		if late := t.slots.resume(t.ctx, t); late != nil && (err == nil || err == io.EOF) {
			err = late
		}
	}
	return n, err
}

// Unwrap serves http.ResponseController.
func (t *ticket) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write implements io.Writer.
func (t *ticket) Write(p []byte) (int, error) {
	t.writing.Store(int64(t.slots.now()))
	n, err := t.ResponseWriter.Write(p)
	return n, t.written(err)
}

// FlushError serves http.ResponseController.
func (t *ticket) FlushError() error {
	t.writing.Store(int64(t.slots.now()))
	return t.written(http.NewResponseController(t.ResponseWriter).Flush())
}

// written ends a write. If the place was taken meanwhile, the request waits for another.
func (t *ticket) written(err error) error {
	t.writing.Store(0)
	if t.taken.Load() {
		if late := t.slots.resume(t.ctx, t); err == nil {
			return late
		}
	}
	return err
}
