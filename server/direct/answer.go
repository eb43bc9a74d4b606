package direct

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// window bounds the unread part of an answer.
const window = 256 << 10

// answer is written by a handler and read by a client.
type answer struct {
	header http.Header
	begun  chan struct{} // closed when code and shown are set, or the handler has failed
	code   int
	shown  http.Header
	body   io.Closer          // of the request; closing it ends the handler's reads
	cancel context.CancelFunc // of the handler's context

	mu       sync.Mutex
	moved    *sync.Cond
	data     []byte
	from     int // read by the client
	done     bool
	err      error // the client's error at the end; nil: io.EOF
	gone     error // why the client does not read any more
	leaving  bool  // the handler must end: writes do not wait for room
	deadline time.Time
	timer    *time.Timer
	reading  *time.Timer // closes body
}

func newAnswer(body io.Closer, cancel context.CancelFunc) *answer {
	a := &answer{header: http.Header{}, begun: make(chan struct{}), body: body, cancel: cancel}
	a.moved = sync.NewCond(&a.mu)
	return a
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if code < http.StatusOK || a.code != 0 {
		return
	}
	a.code, a.shown = code, a.header.Clone()
	close(a.begun)
}

// Write implements io.Writer. It waits for the client to read.
func (a *answer) Write(p []byte) (n int, err error) {
	a.WriteHeader(http.StatusOK)
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(p) > 0 {
		switch {
		case a.gone != nil:
			return n, a.gone
		case !a.deadline.IsZero() && !time.Now().Before(a.deadline):
			return n, os.ErrDeadlineExceeded
		}
		part := p[:min(len(p), window-(len(a.data)-a.from))]
		if len(part) == 0 {
			if a.leaving {
				return n, http.ErrServerClosed
			}
			a.moved.Wait()
			continue
		}
		if a.from == len(a.data) {
			a.data, a.from = a.data[:0], 0
		} else if len(a.data) >= window {
			a.data, a.from = append(a.data[:0], a.data[a.from:]...), 0
		}
		a.data = append(a.data, part...)
		n, p = n+len(part), p[len(part):]
		a.moved.Broadcast()
	}
	return n, nil
}

// FlushError serves http.ResponseController. The client can read written data immediately.
func (a *answer) FlushError() error {
	a.WriteHeader(http.StatusOK)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.gone
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// SetWriteDeadline serves http.ResponseController.
func (a *answer) SetWriteDeadline(at time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deadline = at
	stop(&a.timer)
	if !at.IsZero() && !a.done {
		a.timer = time.AfterFunc(time.Until(at), func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.moved.Broadcast()
		})
	}
	return nil
}

// SetReadDeadline serves http.ResponseController: the body ends with an error at that time.
func (a *answer) SetReadDeadline(at time.Time) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	stop(&a.reading)
	if !at.IsZero() && !a.done {
		a.reading = time.AfterFunc(time.Until(at), a.closeBody)
	}
	return nil
}

// closeBody ends a handler's wait for the client's body.
func (a *answer) closeBody() { _ = a.body.Close() } // the client's own reader may fail

// leave asks the handler to end, whatever it is waiting for.
func (a *answer) leave() {
	a.closeBody()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaving = true
	a.moved.Broadcast()
}

func stop(t **time.Timer) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
}

// finish is called when the handler has ended.
func (a *answer) finish(err error) {
	if err == nil {
		a.WriteHeader(http.StatusOK)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done, a.err = true, err
	stop(&a.timer)
	stop(&a.reading)
	if a.code == 0 {
		close(a.begun)
	}
	a.moved.Broadcast()
}

// give is called when the client does not read any more.
func (a *answer) give(why error) {
	a.closeBody()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone == nil {
		a.gone = why
	}
	a.moved.Broadcast()
	a.cancel()
}

// length returns the Content-Length of an answer that is complete already; -1: unknown.
func (a *answer) length() int64 {
	if n, err := strconv.ParseInt(a.shown.Get("Content-Length"), 10, 64); err == nil {
		return n
	}
	return -1
}

var errClosed = errors.New("http: read on closed response body")

// Read implements io.Reader, for the client.
func (a *answer) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		switch {
		case a.gone != nil:
			return 0, a.gone
		case a.from < len(a.data):
			n := copy(p, a.data[a.from:])
			a.from += n
			a.moved.Broadcast()
			return n, nil
		case a.done && a.err != nil:
			return 0, a.err
		case a.done:
			return 0, io.EOF
		}
		a.moved.Wait()
	}
}

// Close implements io.Closer, for the client.
func (a *answer) Close() error {
	a.give(errClosed)
	return nil
}
