package conns

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// outlivers are the answers of one connection over HTTP/2 that go on although their
// handlers have returned: a goroutine, its stack, and what package http2 keeps for it, are
// most of what a watch costs that says nothing.
//
// Package http2 thinks that such a stream has ended: the frame by which it says so is not
// sent. It must not think that nothing is under way, as it closes a connection then after
// some minutes, or soon after it has told the client to go away. So one handler stays for
// all, also when its own answer has ended.
type outlivers struct {
	conn *HTTP2Conn
	most int // as many as package http2 serves streams

	mu      sync.Mutex
	open    int
	none    chan struct{} // closed when the last has ended; nil: nobody waits
	stays   chan struct{} // not nil: a handler stays until then, or until this is closed
	timer   *time.Timer   // asks whether the connection can rest
	streams map[*http2Stream]struct{}
	closed  bool // nothing goes on any more
}

// outlivable is a request over HTTP/2 whose answer may go on when its handler has returned.
type outlivable struct {
	cancel context.CancelFunc // of the request's context, which does not end when its handler returns
	stream *http2Stream       // that goes on; nil: none
	ended  atomic.Pointer[func()]
}

// end ends the request's context. Another context for it, or context.AfterFunc, would take half a kilobyte of each watch.
func (o *outlivable) end() {
	o.cancel()
	if told := o.ended.Load(); told != nil {
		(*told)()
	}
}

// EndOf is what ends the context of a request whose answer may go on when its handler has returned, so that nobody needs
// another context for that; nil for other requests.
func EndOf(ctx context.Context) (end func()) {
	if o, ok := ctx.Value(outlivableKey{}).(*outlivable); ok {
		return o.end
	}
	return nil
}

type outlivableKey struct{}

// looksLikeWatch says so of a request, without knowing what there is.
func looksLikeWatch(r *http.Request) bool {
	return r.Method == http.MethodGet && (strings.Contains(r.URL.RawQuery, "watch=") || strings.Contains(r.URL.Path, "/watch/"))
}

// outliving serves requests by next, of which those that look like watches may go on.
func (c *HTTP2Conn) outliving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.delivery.Direct() || !looksLikeWatch(r) {
			c.counted(func() { next.ServeHTTP(w, r) })
			return
		}
		var s *http2Stream
		c.counted(func() { s = c.serveOutlivable(next, w, r) })
		if s != nil {
			c.outlivers.stay()
			c.flow.endsUnseen(s.id)
		}
	})
}

// counted counts a handler while it runs.
func (c *HTTP2Conn) counted(serve func()) {
	c.handlers.Add(1)
	defer c.handlers.Add(-1)
	serve()
}

// serveOutlivable returns the stream of an answer that goes on.
func (c *HTTP2Conn) serveOutlivable(next http.Handler, w http.ResponseWriter, r *http.Request) *http2Stream {
	// The request's own context ends when its handler returns.
	ctx, cancel := context.WithCancel(c.lasting(r.Context()))
	o := &outlivable{cancel: cancel}
	unlink := context.AfterFunc(r.Context(), o.end)
	defer func() {
		unlink()
		if o.stream == nil {
			cancel()
		}
	}()
	next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, outlivableKey{}, o)))
	return o.stream
}

// lasting has the values of a request's context, and no end. Where a context of the connection has them, nothing of the
// request is kept for it.
func (c *HTTP2Conn) lasting(ctx context.Context) context.Context {
	if c.shorts != nil {
		return c.shorts.base
	}
	return context.WithoutCancel(ctx)
}

// add counts a stream that goes on, unless there are too many, or it has ended. gone is called
// when the client wants no more of it.
func (l *outlivers) add(s *http2Stream, gone context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.open >= l.most || !s.conn.flow.outlive(s, gone) {
		return false
	}
	if l.streams == nil {
		l.streams = map[*http2Stream]struct{}{}
	}
	l.streams[s] = struct{}{}
	l.open++
	return true
}

func (l *outlivers) remove(s *http2Stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, s)
	if l.open--; l.open > 0 {
		return
	}
	if l.none != nil {
		close(l.none)
		l.none = nil
	}
	l.stays = nil
	l.stopTimer()
	l.conn.flow.wakeResting()
}

// empty says that no answer goes on.
func (l *outlivers) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open == 0
}

// whenNone is closed when no answer goes on any more; nil: none does. The caller holds l.mu.
func (l *outlivers) whenNone() chan struct{} {
	if l.none == nil && l.open > 0 {
		l.none = make(chan struct{})
	}
	return l.none
}

// stay returns at once where another handler stays, or else when no answer goes on any more, or none has to stay.
func (l *outlivers) stay() {
	l.mu.Lock()
	none, let := l.whenNone(), make(chan struct{})
	first := l.stays == nil && none != nil
	if first {
		l.stays = let
		l.startTimer()
	}
	l.mu.Unlock()
	if first {
		select {
		case <-none:
		case <-let:
		}
	}
}

// letGo has the handler that stays return: the connection is about to rest.
func (l *outlivers) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stays != nil {
		close(l.stays)
		l.stays = nil
	}
}

// ask has who reads asked after a while whether the connection can rest.
func (l *outlivers) ask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open > 0 {
		l.startTimer()
	}
}

func (l *outlivers) startTimer() {
	switch after := l.conn.delivery.restAfter; {
	case l.conn.shorts == nil || l.conn.rest.never:
	case l.timer == nil:
		l.timer = time.AfterFunc(after, l.conn.askRest)
	default:
		l.timer.Reset(after)
	}
}

// stopAsking is called when the connection rests.
func (l *outlivers) stopAsking() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopTimer()
}

func (l *outlivers) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
}

// await waits until no answer goes on any more, and has what the clients send meanwhile read.
func (l *outlivers) await(read func()) {
	l.mu.Lock()
	l.closed = true
	none := l.whenNone()
	l.mu.Unlock()
	if none != nil {
		read()
		<-none
	}
}

// cancel ends all that goes on, of a client that has gone.
func (l *outlivers) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.streams {
		s.gone()
	}
}

// end ends all that goes on, on a connection that is closed, and waits for that.
func (l *outlivers) end() {
	l.cancel()
	l.await(func() {})
}

// Outlive implements Stream.
func (s *http2Stream) Outlive() bool {
	o, ok := s.ctx.Value(outlivableKey{}).(*outlivable)
	if !ok || o.stream != nil || !s.conn.outlivers.add(s, o.end) {
		return false
	}
	o.stream = s
	s.control, s.wake = nil, nil
	return true
}

// WhenEnded implements Stream.
func (s *http2Stream) WhenEnded(ctx context.Context, told func()) (stop func() bool) {
	o, ok := ctx.Value(outlivableKey{}).(*outlivable)
	if !ok {
		return context.AfterFunc(ctx, told)
	}
	o.ended.Store(&told)
	return o.forget
}

// forget tells nobody of the end.
func (o *outlivable) forget() bool { return o.ended.Swap(nil) != nil }

// Over implements Stream.
func (s *http2Stream) Over() {
	s.gone()
	s.conn.outlivers.remove(s)
}

// closeOutliving ends the stream on the wire, as package http2 does not.
func (s *http2Stream) closeOutliving(complete bool) {
	whole := complete && s.Flush() == nil
	if !s.conn.flow.finish(s) || s.conn.queue.broken() {
		return
	}
	if whole {
		s.conn.frames.append(func(out []byte) []byte { return appendData(out, s.id, nil, true) })
	} else {
		s.conn.frames.addNumber(resetFrame, s.id, resetInternal)
	}
	s.conn.sendQueued(false)
}

// outlive has a stream go on when package http2 ends it.
func (f *flowControl) outlive(s *http2Stream, gone context.CancelFunc) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.ended {
		return false
	}
	s.gone, s.found, s.grown = gone, nil, nil
	if f.unended == nil {
		f.unended = map[uint32]bool{}
	}
	f.unended[s.id] = false
	return true
}

// endsUnseen has the frame looked for by which package http2 ends a stream that goes on.
func (f *flowControl) endsUnseen(id uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sought, ok := f.unended[id]; ok && !sought {
		f.unended[id] = true
		f.tokens.Add(1)
	}
}

// seesEnd says whether a frame is that by which package http2 ends a stream that goes on, or
// that has ended by itself. It is not for the client.
func (f *flowControl) seesEnd(h *head) bool {
	if h.kind() != dataFrame || h.length() > 0 || !h.has(endStream) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.forgetUnended(h.stream())
}

// goesOn says of a stream that package http2 does not know what has become of it: what the
// client says of it is nothing for package http2.
func (f *flowControl) goesOn(id uint32) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.unended[id]
	return ok
}

// forgetUnended says whether package http2 had not ended a stream. The caller holds f.mu.
func (f *flowControl) forgetUnended(id uint32) bool {
	sought, ok := f.unended[id]
	delete(f.unended, id)
	if sought {
		f.tokens.Add(-1)
	}
	if f.ends && len(f.unended) == 0 {
		f.ends = false
		f.wake()
	}
	return ok
}

// endedByHTTP2 is told that package http2 resets a stream.
func (f *flowControl) endedByHTTP2(id uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetUnended(id)
	delete(f.unsent, id)
	f.end(id)
}

// finish says whether a stream had not ended, which it has now.
func (f *flowControl) finish(s *http2Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams[s.id] == s {
		delete(f.streams, s.id)
	}
	before := s.ended
	s.ended = true
	return !before
}
