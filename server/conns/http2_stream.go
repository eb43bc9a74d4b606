package conns

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"
)

// tokenSize is the size of a token in bytes.
const tokenSize = 24

// token is a random body part. Package http2 does not tell a handler which stream its
// answer goes out by, so the handler sends a token: the frame that carries it has the
// stream's number, and is taken out before it reaches the client.
type token [tokenSize]byte

// continues says whether payload is the part of the token that begins at from.
func (t *token) continues(from int, payload []byte) bool {
	return len(payload) > 0 && bytes.HasPrefix(t[from:], payload)
}

// tokenPatience is how long a token may take through package http2 while the connection
// has nothing else to send. That takes microseconds; what is longer is no question of
// load.
const tokenPatience = 10 * time.Second

// errToken: package http2 did not send the token in data frames of its own.
var errToken = errors.New("package http2 has sent the token of a stream in a way that is not known")

// http2Stream is an answer whose data frames are sent between those of package http2.
type http2Stream struct {
	conn    *HTTP2Conn
	ctx     context.Context // of the request
	control *http.ResponseController
	token   token
	found   chan struct{} // closed when the token has shown the stream's number
	grown   chan struct{} // signalled when a window has grown, or the stream has ended
	wake    chan struct{} // signalled by Wake
	rest    []byte        // that the windows have no room for

	// Guarded by the mutex of conn.flow:
	id     uint32
	seen   int   // bytes of the token
	cut    bool  // the token may have been cut into parts that are too small
	window int64 // of the stream
	ended  bool
	gone   context.CancelFunc // called when it ends, once it goes on without its handler
}

// takeOver is an Opener's work. w is package http2's.
func (c *HTTP2Conn) takeOver(ctx context.Context, w http.ResponseWriter) (Stream, error) {
	s := &http2Stream{
		conn: c, ctx: ctx, control: http.NewResponseController(w),
		found: make(chan struct{}), grown: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	_, _ = rand.Read(s.token[:]) // it never fails
	if !c.flow.search(s) {
		return nil, nil
	}
	defer c.flow.endSearch(s)
	if s.sendToken(w) != nil {
		return nil, nil // the client has gone
	}
	return s.awaitToken(c.delivery.tokenPatience)
}

// sendToken waits for the client's windows, but not without end: package http2 knows nobody
// else who would.
func (s *http2Stream) sendToken(w http.ResponseWriter) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.conn.delivery.patience)) // that of package http2 takes one
	_, err := w.Write(s.token[:])
	if err == nil {
		err = s.control.Flush()
	}
	_ = s.control.SetWriteDeadline(time.Time{})
	return err
}

// awaitToken waits until the stream's number is known. After an error the client may have
// got something of the token.
func (s *http2Stream) awaitToken(patience time.Duration) (Stream, error) {
	began := time.Now()
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for {
		select {
		case <-s.found:
			return s, nil
		case <-s.ctx.Done():
			return nil, nil
		case <-tick.C:
		}
		idle := s.conn.idle()
		select {
		case <-s.found: // beside the tick, or since: what is idle has shown all that there was
			return s, nil
		default:
		}
		switch {
		case idle:
			if s.conn.flow.cutShort(s) {
				return nil, errClient
			}
			return nil, errToken
		case time.Since(began) >= clientPatience:
			return nil, errClient
		}
	}
}

// signal tells Flush that it may go on. It may be called with the mutex of conn.flow held.
func (s *http2Stream) signal() {
	select {
	case s.grown <- struct{}{}:
	default:
	}
}

func (s *http2Stream) TryWrite(b *[]byte) (blocked bool, err error) {
	if len(s.rest) == 0 {
		if s.rest, err = s.queue((*b)[Headroom:]); err != nil {
			return false, err
		}
		s.rest = bytes.Clone(s.rest)
	} else {
		s.rest = append(s.rest, (*b)[Headroom:]...)
	}
	s.conn.sendQueued(false)
	return len(s.rest) > 0 || s.conn.queue.blocked(), nil
}

// queue makes frames of what the windows have room for, and returns what is left.
func (s *http2Stream) queue(p []byte) ([]byte, error) {
	n, err := s.conn.flow.grant(s, len(p))
	if err == nil && n > 0 {
		s.conn.frames.add(s.id, p[:n])
	}
	return p[n:], err
}

func (s *http2Stream) Write(b *[]byte) error {
	s.rest = append(s.rest, (*b)[Headroom:]...)
	return s.Flush()
}

func (s *http2Stream) Flush() (err error) {
	for len(s.rest) > 0 {
		left := len(s.rest)
		if s.rest, err = s.queue(s.rest); err != nil {
			return err
		}
		if err = s.conn.flushQueued(); err != nil {
			return err
		}
		if len(s.rest) == left {
			if err = s.conn.flow.awaitWindow(s.ctx, s); err != nil {
				return err
			}
		}
	}
	s.rest = nil
	return s.conn.flushQueued()
}

// Close lets package http2 end the stream when the handler returns. An answer that is not
// whole must be reset first: package http2 would end it as if nothing were missing.
func (s *http2Stream) Close(complete bool) {
	if s.gone != nil {
		s.closeOutliving(complete)
		return
	}
	defer s.conn.flow.remove(s)
	if complete && s.Flush() == nil || s.conn.queue.broken() {
		return
	}
	_ = s.control.SetWriteDeadline(time.Unix(1, 0)) // it has passed
	late := time.NewTimer(clientPatience / 10)
	defer late.Stop()
	for !s.conn.flow.seenEnd(s) {
		select {
		case <-s.grown:
		case <-late.C:
			return
		}
	}
}

func (s *http2Stream) Wait(until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	}
	return nil
}

func (s *http2Stream) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
