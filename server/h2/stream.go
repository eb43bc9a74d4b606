package h2

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/wire"
)

// errReset: the client has cancelled the request, or the server has refused it.
var errReset = errors.New("http2: stream closed")

// Stream is a request and its response at the level of frames. A handler writes to it through a
// response; once it is detached it is a wire.Stream.
type Stream struct {
	conn *conn
	id   uint32
	ctx  requestCtx

	// Guarded by conn.mu:
	sendWindow int64         // bytes of the response that the client accepts
	recvWindow int64         // bytes of the body that the client may send
	consumed   int64         // bytes of the body that were read since the last WINDOW_UPDATE
	received   int64         // bytes of the body
	length     int64         // of the body as announced; -1: unknown
	halfClosed bool          // the request is complete
	ended      bool          // nothing more is sent
	detached   bool          // it goes on without its handler
	buffering  bool          // the handler is called when the body is complete
	cause      error         // of ended, unless the client has reset the stream
	since      time.Time     // when the headers of a buffering stream arrived
	changed    chan struct{} // closed by signalLocked; nil: no goroutine waits
	body       *body         // nil: there is none
	request    *http.Request // until the handler is called
	pending    []byte        // output of a detached stream that is not queued yet
}

// signalLocked wakes the goroutine that waits for a change.
func (s *Stream) signalLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// waitLocked waits for a change, or until a time unless that is zero. It unlocks conn.mu meanwhile.
func (s *Stream) waitLocked(until time.Time) (late bool) {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	changed := s.changed
	s.conn.waiters++
	s.conn.mu.Unlock()
	defer func() {
		s.conn.mu.Lock()
		s.conn.waiters--
	}()
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-changed:
		return false
	case <-timeout:
		return true
	}
}

// endLocked stops a stream.
func (s *Stream) endLocked() {
	s.ended = true
	if s.body != nil {
		s.body.endLocked(errReset)
	}
	s.signalLocked()
}

// removeLocked removes a stream that has ended. reset means that the server has reset it, which the
// client may not know yet.
func (c *conn) removeLocked(s *Stream, reset bool) {
	if c.streams[s.id] == s {
		delete(c.streams, s.id)
		c.closed.add(s.id, reset)
		if len(c.streams) == 0 {
			c.idleSince = time.Now()
			if c.goneAway {
				c.goAwayAt = c.idleSince
			}
		}
	}
	if s.buffering {
		s.buffering = false
		c.buffering -= int(s.length)
	}
	s.endLocked()
}

// resetLocked resets a stream. The caller cancels its context afterwards.
func (c *conn) resetLocked(s *Stream, code http2.ErrCode) {
	if s.ended {
		return
	}
	c.removeLocked(s, true)
	c.framesLocked(func(f *http2.Framer) { _ = f.WriteRSTStream(s.id, code) })
}

// fail resets a stream whose response is incomplete.
func (s *Stream) fail(cause error) {
	s.conn.mu.Lock()
	if s.cause == nil {
		s.cause = cause
	}
	s.conn.resetLocked(s, http2.ErrCodeInternal)
	s.conn.sendAndUnlock()
	s.ctx.cancel()
}

// errorLocked returns why nothing can be sent.
func (s *Stream) errorLocked() error {
	switch {
	case s.cause != nil:
		return s.cause
	case s.ended:
		return errReset
	}
	return s.conn.err
}

// reserveLocked takes up to n bytes from the windows.
func (s *Stream) reserveLocked(n int) int {
	n = int(max(0, min(int64(n), s.sendWindow, s.conn.sendWindow)))
	s.sendWindow -= int64(n)
	s.conn.sendWindow -= int64(n)
	return n
}

// write sends headers, unless h is nil, and a part of the body; last means that nothing follows. It
// waits while the client is slow, and resets the stream of one that accepts nothing for too long. It resets a detached
// stream, which may last for hours, if the client takes too long to accept everything.
func (s *Stream) write(h *headers, p []byte, last bool) error {
	c := s.conn
	var deadline time.Time // zero: none since the last progress, or since the beginning if the stream is detached
	c.mu.Lock()
	for {
		if err := s.errorLocked(); err != nil {
			c.mu.Unlock()
			return err
		}
		if c.fullLocked() {
			if !s.detached {
				deadline = time.Time{} // the connection has its own
			}
		} else {
			if h != nil {
				c.headersLocked(s.id, h, last && len(p) == 0)
			}
			n := 0
			if len(p) > 0 {
				if n = s.reserveLocked(min(len(p), outMax)); n > 0 {
					c.dataLocked(s.id, p[:n], last && n == len(p))
				}
			} else if last && h == nil {
				c.dataLocked(s.id, nil, true)
			}
			p, h = p[n:], nil
			if len(p) == 0 {
				if last {
					s.completeLocked()
				}
				if last && s.detached && !c.drainAt.IsZero() {
					c.mu.Unlock() // checkDrain sends the ends of all watches of the connection together
					return nil
				}
				c.sendAndUnlock()
				return nil
			}
			if n > 0 || c.out != nil && !c.flushing {
				if !s.detached {
					deadline = time.Time{}
				}
				c.sendAndUnlock()
				c.mu.Lock()
				continue
			}
		}
		if deadline.IsZero() {
			deadline = time.Now().Add(patience)
		}
		if s.waitLocked(deadline) && (s.detached || !c.fullLocked()) && s.errorLocked() == nil {
			c.mu.Unlock()
			s.fail(os.ErrDeadlineExceeded)
			return os.ErrDeadlineExceeded
		}
	}
}

// completeLocked ends a stream whose response is complete. If the client is still sending its body,
// it resets the stream.
func (s *Stream) completeLocked() {
	if s.ended {
		return
	}
	s.conn.removeLocked(s, !s.halfClosed)
	if !s.halfClosed {
		s.conn.framesLocked(func(f *http2.Framer) { _ = f.WriteRSTStream(s.id, http2.ErrCodeNo) })
	}
}

// TryWrite implements wire.Stream.
func (s *Stream) TryWrite(b *[]byte) (blocked bool, err error) {
	c, p := s.conn, (*b)[wire.Headroom:]
	c.mu.Lock()
	if err := s.errorLocked(); err != nil {
		c.mu.Unlock()
		return false, err
	}
	if len(s.pending) == 0 && !c.blocked {
		if n := s.reserveLocked(len(p)); n > 0 {
			c.dataLocked(s.id, p[:n], false)
			p = p[n:]
		}
	}
	if len(p) > 0 {
		s.pending = append(s.pending, p...)
	}
	blocked = len(s.pending) > 0
	if c.out != nil && len(*c.out) < outTogether && c.writers.Load() > 0 {
		c.mu.Unlock() // the last RemoveWriter sends it
		return blocked, nil
	}
	c.sendAndUnlock()
	return blocked, nil
}

// Write implements wire.Stream.
func (s *Stream) Write(b *[]byte) error {
	p := (*b)[wire.Headroom:]
	if pending := s.pending; len(pending) > 0 { // only the writer uses it
		s.pending = nil
		p = append(pending, p...)
	}
	return s.write(nil, p, false)
}

// Flush implements wire.Stream.
func (s *Stream) Flush() error {
	pending := s.pending
	s.pending = nil
	return s.write(nil, pending, false)
}

// Close implements wire.Stream.
func (s *Stream) Close(complete bool) {
	pending := s.pending
	s.pending = nil
	if !complete || s.write(nil, pending, true) != nil {
		s.fail(nil)
	}
}

// WhenEnded implements wire.Stream.
func (s *Stream) WhenEnded(_ context.Context, f func()) (stop func() bool) {
	return s.ctx.AfterFunc(f)
}

// Over implements wire.Stream.
func (s *Stream) Over() {
	s.ctx.cancel()
	s.conn.running.Done()
}

var _ wire.Stream = (*Stream)(nil)

// requestCtx is the context of a request. Package context would make another one for each function
// that is to be called at its end.
type requestCtx struct {
	conn  *conn
	ended atomic.Bool

	// Guarded by conn.mu:
	done chan struct{} // nil: Done was not called
	ends []*func()     // called at the end
}

// Deadline implements context.Context.
func (*requestCtx) Deadline() (time.Time, bool) { return time.Time{}, false }

// Err implements context.Context.
func (x *requestCtx) Err() error {
	if x.ended.Load() {
		return context.Canceled
	}
	return nil
}

// Done implements context.Context.
func (x *requestCtx) Done() <-chan struct{} {
	x.conn.mu.Lock()
	defer x.conn.mu.Unlock()
	if x.done == nil {
		x.done = make(chan struct{})
		if x.ended.Load() {
			close(x.done)
		}
	}
	return x.done
}

// Value implements context.Context.
func (x *requestCtx) Value(key any) any {
	if key == (wire.EndKey{}) {
		return x.cancel
	}
	return x.conn.value(key)
}

// AfterFunc serves package context, which calls it for context.AfterFunc and derived contexts. The
// goroutine that ends the context calls f.
func (x *requestCtx) AfterFunc(f func()) (stop func() bool) {
	x.conn.mu.Lock()
	defer x.conn.mu.Unlock()
	if x.ended.Load() {
		go f() // as package context does
		return func() bool { return false }
	}
	end := &f
	x.ends = append(x.ends, end)
	return func() bool {
		x.conn.mu.Lock()
		defer x.conn.mu.Unlock()
		i := slices.Index(x.ends, end)
		if i >= 0 {
			x.ends = slices.Delete(x.ends, i, i+1)
		}
		return i >= 0
	}
}

// cancel ends the context. It is called without locks.
func (x *requestCtx) cancel() {
	x.conn.mu.Lock()
	if x.ended.Swap(true) {
		x.conn.mu.Unlock()
		return
	}
	if x.done != nil {
		close(x.done)
	}
	ends := x.ends
	x.ends = nil
	x.conn.mu.Unlock()
	for _, f := range ends {
		(*f)()
	}
}
