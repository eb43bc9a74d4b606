package h2

import (
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/net/http2"
)

// body is the body of a request. All fields but stream are guarded by conn.mu.
type body struct {
	stream       *Stream
	buf          []byte // received; the handler has read up to from
	from         int
	read         bool  // Read has returned data
	ended        bool  // nothing more follows
	err          error // of ended; io.EOF: the body is complete
	sendContinue bool  // the client waits for 100 Continue
	deadline     *time.Timer
}

// addLocked adds received data.
func (b *body) addLocked(part []byte) {
	if b.ended || len(part) == 0 {
		return
	}
	if b.from > 0 && len(b.buf)+len(part) > cap(b.buf) {
		b.buf = b.buf[:copy(b.buf, b.buf[b.from:])]
		b.from = 0
	}
	b.buf = append(b.buf, part...)
	b.stream.signalLocked()
}

// endLocked ends the body with an error; nil: it is complete.
func (b *body) endLocked(err error) {
	if b.ended {
		return
	}
	if b.ended, b.err = true, err; err == nil {
		b.err = io.EOF
	}
	if b.deadline != nil {
		b.deadline.Stop() // it would keep the request in memory
	}
	b.stream.signalLocked()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	s := b.stream
	s.conn.mu.Lock()
	if b.sendContinue && !b.ended && len(b.buf) == 0 {
		b.sendContinue = false
		var h headers
		h.addStatus(http.StatusContinue)
		s.conn.headersLocked(s.id, &h, false)
		s.conn.sendAndUnlock()
		s.conn.mu.Lock()
	}
	for b.from == len(b.buf) {
		if b.ended {
			defer s.conn.mu.Unlock()
			return 0, b.err
		}
		s.waitLocked(time.Time{})
	}
	n := copy(p, b.buf[b.from:])
	b.read = true
	if b.from += n; b.from == len(b.buf) {
		b.buf, b.from = b.buf[:0], 0
	}
	s.consumed += int64(n)
	s.updateWindowLocked()
	s.conn.sendAndUnlock()
	return n, nil
}

// updateWindowLocked renews the stream's window when enough of the body was read.
func (s *Stream) updateWindowLocked() {
	if s.halfClosed || s.ended || s.consumed < bodyWindow/4 {
		return
	}
	n := s.consumed
	s.recvWindow, s.consumed = s.recvWindow+n, 0
	s.conn.framesLocked(func(f *http2.Framer) { _ = f.WriteWindowUpdate(s.id, uint32(n)) })
}

// skipContinue is called when the response begins: 100 Continue cannot follow.
func (b *body) skipContinue() {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	b.sendContinue = false
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	b.endLocked(http.ErrBodyReadAfterClose)
	b.buf, b.from = nil, 0
	return nil
}

// Whole returns a body of up to limit bytes without a copy, if it was received whole and not read.
// Otherwise ok is false, and the body can be read.
func (b *body) Whole(limit int64) (whole []byte, ok bool) {
	b.stream.conn.mu.Lock()
	defer b.stream.conn.mu.Unlock()
	if b.read || !b.ended || b.err != io.EOF || len(b.buf) == 0 || int64(len(b.buf)) > limit {
		return nil, false
	}
	whole, b.buf = b.buf, nil
	return whole, true
}

// setDeadline ends a body that is not complete by then.
func (b *body) setDeadline(at time.Time) {
	mu := &b.stream.conn.mu
	mu.Lock()
	defer mu.Unlock()
	if b.deadline != nil {
		b.deadline.Stop()
		b.deadline = nil
	}
	if at.IsZero() || b.ended {
		return
	}
	left := time.Until(at)
	if left <= 0 {
		b.endLocked(os.ErrDeadlineExceeded)
		return
	}
	b.deadline = time.AfterFunc(left, func() {
		mu.Lock()
		defer mu.Unlock()
		b.endLocked(os.ErrDeadlineExceeded)
	})
}
