package h2

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/wire"
)

// errReset: the client wants no answer any more, or was refused one.
var errReset = errors.New("http2: stream closed")

// Stream is a request and its answer as the wire has them. With a handler it is written through
// an answer; without one it is the wire.Stream of whoever has detached it.
type Stream struct {
	conn *conn
	id   uint32
	ctx  requestCtx

	// Guarded by conn.mu:
	window   int64         // bytes of the answer that the client takes
	room     int64         // bytes of the body that the client may send
	owed     int64         // bytes of the body by which room may grow again
	came     int64         // bytes of the body
	length   int64         // that were announced; -1: none were
	sent     bool          // the client has sent everything
	ended    bool          // nothing of the answer is sent any more
	awaits   bool          // the handler is called when the body has come
	detached bool          // there is no handler
	cause    error         // of ended, where it is not the client's wish
	since    time.Time     // when the headers came, of a stream that awaits
	wait     chan struct{} // closed when something has changed that somebody waits for; nil: nobody does
	body     *body         // nil: there is none
	request  *http.Request // until the handler is called
	kept     []byte        // of a detached answer: what was to be written and is not queued yet
}

// signalLocked wakes whoever waits for a change.
func (s *Stream) signalLocked() {
	if s.wait != nil {
		close(s.wait)
		s.wait = nil
	}
}

// waitLocked waits for a change, or the time of a timer. It is called, and returns, with conn.mu
// locked.
func (s *Stream) waitLocked(until <-chan time.Time) (late bool) {
	if s.wait == nil {
		s.wait = make(chan struct{})
	}
	changed := s.wait
	s.conn.mu.Unlock()
	defer s.conn.mu.Lock()
	select {
	case <-changed:
		return false
	case <-until:
		return true
	}
}

// endLocked has nothing sent any more.
func (s *Stream) endLocked() {
	s.ended = true
	if s.body != nil {
		s.body.endLocked(errReset)
	}
	s.signalLocked()
}

// removeLocked forgets a stream that has ended. reset says that this side has reset it, which the
// client may not know yet.
func (c *conn) removeLocked(s *Stream, reset bool) {
	if c.streams[s.id] == s {
		delete(c.streams, s.id)
		c.closed.add(s.id, reset)
		if len(c.streams) == 0 {
			c.idle = time.Now()
			if c.goneAway {
				c.goAwayAt = c.idle
			}
		}
	}
	if s.awaits {
		s.awaits = false
		c.awaited -= int(s.length)
	}
	s.endLocked()
}

// resetLocked resets a stream. Its context is still to be cancelled.
func (c *conn) resetLocked(s *Stream, code http2.ErrCode) {
	if s.ended {
		return
	}
	c.removeLocked(s, true)
	c.framesLocked(func(f *http2.Framer) { _ = f.WriteRSTStream(s.id, code) }) // a buffer takes everything
}

// fail resets a stream whose answer is not whole.
func (s *Stream) fail(code http2.ErrCode, cause error) {
	s.conn.mu.Lock()
	if s.cause == nil {
		s.cause = cause
	}
	s.conn.resetLocked(s, code)
	s.conn.sendAndUnlock()
	s.ctx.cancel()
}

// errorLocked is why nothing can be sent.
func (s *Stream) errorLocked() error {
	switch {
	case s.cause != nil:
		return s.cause
	case s.ended:
		return errReset
	}
	return s.conn.err
}

// grantLocked is how many of n bytes may be sent now.
func (s *Stream) grantLocked(n int) int {
	n = int(max(0, min(int64(n), s.window, s.conn.window)))
	s.window -= int64(n)
	s.conn.window -= int64(n)
	return n
}

// write sends headers, if h is not nil, and a part of the body; last says that nothing follows.
// It waits while the client is slow. One that takes nothing for too long is reset.
func (s *Stream) write(h *headers, p []byte, last bool) error {
	c := s.conn
	var late stopwatch
	defer late.stop()
	c.mu.Lock()
	for {
		if err := s.errorLocked(); err != nil {
			c.mu.Unlock()
			return err
		}
		if c.fullLocked() {
			late.restart() // the connection has its own
		} else {
			if h != nil {
				c.headersLocked(s.id, h, last && len(p) == 0)
			}
			n := 0
			if len(p) > 0 {
				if n = s.grantLocked(min(len(p), outMax)); n > 0 {
					c.dataLocked(s.id, p[:n], last && n == len(p))
				}
			} else if last && h == nil {
				c.dataLocked(s.id, nil, true)
			}
			p, h = p[n:], nil
			if len(p) == 0 {
				if last {
					s.wholeLocked()
				}
				c.sendAndUnlock()
				return nil
			}
			if n > 0 || c.out != nil && !c.pumping {
				late.restart()
				c.sendAndUnlock()
				c.mu.Lock()
				continue
			}
		}
		if s.waitLocked(late.start()) && !c.fullLocked() && s.errorLocked() == nil {
			c.mu.Unlock()
			s.fail(http2.ErrCodeInternal, os.ErrDeadlineExceeded)
			return os.ErrDeadlineExceeded
		}
	}
}

// stopwatch tells when a client has made no progress for too long.
type stopwatch struct {
	timer *time.Timer
	runs  bool
}

// start starts it if it does not run.
func (w *stopwatch) start() <-chan time.Time {
	switch {
	case w.timer == nil:
		w.timer = time.NewTimer(patience)
	case !w.runs:
		w.timer.Reset(patience)
	}
	w.runs = true
	return w.timer.C
}

// restart has it begin anew when it is started next.
func (w *stopwatch) restart() { w.runs = false }

func (w *stopwatch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// wholeLocked ends a stream whose answer is whole. A client that is still sending its body is told
// that nobody reads it.
func (s *Stream) wholeLocked() {
	if s.ended {
		return
	}
	s.conn.removeLocked(s, !s.sent)
	if !s.sent {
		s.conn.framesLocked(func(f *http2.Framer) { _ = f.WriteRSTStream(s.id, http2.ErrCodeNo) }) // a buffer takes everything
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
	if len(s.kept) == 0 && !c.blocked {
		if n := s.grantLocked(len(p)); n > 0 {
			c.dataLocked(s.id, p[:n], false)
			p = p[n:]
		}
	}
	if len(p) > 0 {
		s.kept = append(s.kept, p...)
	}
	blocked = len(s.kept) > 0
	if c.out != nil && len(*c.out) < outTogether && c.writers.Load() > 0 {
		c.mu.Unlock() // the last of the writers sends it
		return blocked, nil
	}
	c.sendAndUnlock()
	return blocked, nil
}

// Write implements wire.Stream.
func (s *Stream) Write(b *[]byte) error {
	p := (*b)[wire.Headroom:]
	if kept := s.kept; len(kept) > 0 { // which nobody else has to do with
		s.kept = nil
		if err := s.write(nil, append(kept, p...), false); err != nil {
			return err
		}
		return nil
	}
	return s.write(nil, p, false)
}

// Flush implements wire.Stream.
func (s *Stream) Flush() error {
	kept := s.kept
	s.kept = nil
	return s.write(nil, kept, false)
}

// Close implements wire.Stream.
func (s *Stream) Close(complete bool) {
	if complete && s.Flush() == nil && s.write(nil, nil, true) == nil {
		return
	}
	s.fail(http2.ErrCodeInternal, nil)
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

// requestCtx is the context of a request. One of package context would need another for each
// function that is to be called at its end.
type requestCtx struct {
	conn  *conn
	ended atomic.Bool

	// Guarded by conn.mu:
	done chan struct{} // nil: nobody has asked for it
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
		return func() { x.cancel() }
	}
	return x.conn.value(key)
}

// AfterFunc has f called when the context ends, by whoever ends it. Package context finds it.
func (x *requestCtx) AfterFunc(f func()) (stop func() bool) {
	x.conn.mu.Lock()
	defer x.conn.mu.Unlock()
	if x.ended.Load() {
		go f() // as package context does
		return func() bool { return false }
	}
	one := &f
	x.ends = append(x.ends, one)
	return func() bool { return x.forget(one) }
}

func (x *requestCtx) forget(f *func()) bool {
	x.conn.mu.Lock()
	defer x.conn.mu.Unlock()
	for i, one := range x.ends {
		if one == f {
			x.ends = append(x.ends[:i], x.ends[i+1:]...)
			return true
		}
	}
	return false
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
