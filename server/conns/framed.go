package conns

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"time"
)

// tokenSize is that of a token, in bytes.
const tokenSize = 24

// token is what an answer's handler has package http2 send, so that the stream shows
// by which it goes out. It never reaches the client.
type token [tokenSize]byte

func (t *token) continues(from int, payload []byte) bool {
	return len(payload) > 0 && bytes.HasPrefix(t[from:], payload)
}

// framed is an answer in data frames beside those of package http2.
type framed struct {
	f       *HTTP2Conn
	ctx     context.Context // of the request
	control *http.ResponseController
	token   token
	found   chan struct{} // closed when the stream is known
	grown   chan struct{} // signalled when a window has
	wake    chan struct{} // signalled by Wake
	rest    []byte        // that the windows have no room for

	// Guarded by the mutex of f.windows:
	id     uint32
	seen   int // of token
	window int64
	ended  bool
}

// leave takes an answer away from package http2. w is that package's.
func (f *HTTP2Conn) leave(ctx context.Context, w http.ResponseWriter) Stream {
	s := &framed{
		f: f, ctx: ctx, control: http.NewResponseController(w),
		found: make(chan struct{}), grown: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	_, _ = rand.Read(s.token[:]) // it never fails
	if !f.windows.claim(s) {
		return nil
	}
	defer f.windows.unclaim(s)
	if _, err := w.Write(s.token[:]); err != nil || s.control.Flush() != nil {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-s.found:
		return s
	case <-ctx.Done():
		return nil
	case <-timer.C:
		panic(http.ErrAbortHandler) // the client may have got something of the token
	}
}

// signal is called with the mutex of f.windows held.
func (s *framed) signal() {
	select {
	case s.grown <- struct{}{}:
	default:
	}
}

func (s *framed) TryWrite(b *[]byte) (stuck bool, err error) {
	if len(s.rest) == 0 {
		if s.rest, err = s.send((*b)[Headroom:]); err != nil {
			return false, err
		}
		s.rest = bytes.Clone(s.rest)
	} else {
		s.rest = append(s.rest, (*b)[Headroom:]...)
	}
	s.f.sendBeside(false)
	return len(s.rest) > 0 || s.f.sluice.stuck(), nil
}

// send puts what the windows have room for between the frames of package http2, and
// returns what is left.
func (s *framed) send(p []byte) ([]byte, error) {
	n, err := s.f.windows.grant(s, len(p))
	if err == nil && n > 0 {
		s.f.beside.add(s.id, p[:n])
	}
	return p[n:], err
}

func (s *framed) Write(b *[]byte) error {
	s.rest = append(s.rest, (*b)[Headroom:]...)
	return s.Flush()
}

func (s *framed) Flush() (err error) {
	for len(s.rest) > 0 {
		left := len(s.rest)
		if s.rest, err = s.send(s.rest); err != nil {
			return err
		}
		if err = s.f.sendAll(); err != nil {
			return err
		}
		if len(s.rest) == left {
			if err = s.f.windows.wait(s.ctx, s); err != nil {
				return err
			}
		}
	}
	s.rest = nil
	return s.f.sendAll()
}

func (s *framed) Close(complete bool) {
	defer s.f.windows.leave(s)
	if complete && s.Flush() == nil || s.f.sluice.broken() {
		return
	}
	// Package http2 would end the stream as if nothing were missing.
	_ = s.control.SetWriteDeadline(time.Unix(1, 0))
	late := time.NewTimer(patience / 10)
	defer late.Stop()
	for !s.f.windows.over(s) {
		select {
		case <-s.grown:
		case <-late.C:
			return
		}
	}
}

func (s *framed) Wait(until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	}
	return nil
}

func (s *framed) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
