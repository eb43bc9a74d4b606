package h2

import (
	"errors"
	"net/http"
	"runtime/debug"
	"sync"
)

// startLocked has a goroutine of the pool serve a request.
func (c *conn) startLocked(s *Stream) {
	if c.err != nil {
		return
	}
	c.handlers++
	c.running.Add(1)
	c.server.pool.run(s)
}

// bodyEndedLocked is called when a request is complete.
func (c *conn) bodyEndedLocked(s *Stream) {
	s.halfClosed = true
	s.body.endLocked(nil)
	if s.buffering {
		c.buffering -= int(s.length)
		s.buffering = false
		c.startLocked(s)
	}
}

// serve calls the handler, and completes the response unless it was detached.
func (s *Stream) serve() {
	c := s.conn
	a := newResponse(s, s.request)
	defer func() { // also if the handler calls runtime.Goexit
		a.release()
		c.mu.Lock()
		c.handlers--
		c.sendAndUnlock()
		c.running.Done()
	}()
	returned := s.callHandler(a)
	if !a.detached {
		if returned {
			a.end()
		}
		s.ctx.cancel()
	}
}

// callHandler calls the handler. If it panics, or ends its goroutine, the stream is reset.
func (s *Stream) callHandler(a *response) (returned bool) {
	server, r := s.conn.server, a.request
	defer func() {
		if returned {
			return
		}
		reason := recover()
		if !a.detached {
			s.fail(nil)
		}
		if err, is := reason.(error); reason != nil && (!is || !errors.Is(err, http.ErrAbortHandler)) && server.cfg.Log != nil {
			server.cfg.Log.Printf("http2: panic serving %v: %v\n%s", r.RemoteAddr, reason, debug.Stack())
		}
	}()
	if _, tooLong := r.Header[tooLongKey]; tooLong {
		http.Error(a, http.StatusText(http.StatusRequestHeaderFieldsTooLarge), http.StatusRequestHeaderFieldsTooLarge)
		return true
	}
	server.cfg.Handler.ServeHTTP(a, r)
	return true
}

// pool reuses goroutines for handlers, because their stacks have grown.
type pool struct {
	mu      sync.Mutex
	idle    []chan *Stream // of idle goroutines, the most recently used last; a nil Stream ends one
	least   int            // the fewest idle since the last shrink
	closed  bool
	running sync.WaitGroup
}

// run serves a request in an idle goroutine or a new one.
func (p *pool) run(s *Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		next := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.least = min(p.least, n-1)
		next <- s // it has room
		return
	}
	p.running.Go(func() { p.work(s) })
}

func (p *pool) work(s *Stream) {
	next := make(chan *Stream, 1)
	for s != nil {
		s.serve()
		if !p.park(next) {
			return
		}
		s = <-next
	}
}

func (p *pool) park(next chan *Stream) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.idle = append(p.idle, next)
	}
	return !p.closed
}

// shrink ends the goroutines that were not needed since the last call.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, next := range p.idle[:p.least] {
		next <- nil
	}
	p.idle = append([]chan *Stream(nil), p.idle[p.least:]...)
	p.least = len(p.idle)
}

// close waits until all goroutines have ended.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, next := range p.idle {
		next <- nil
	}
	p.idle, p.least = nil, 0
	p.mu.Unlock()
	p.running.Wait()
}
