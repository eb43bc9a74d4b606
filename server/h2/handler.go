package h2

import (
	"errors"
	"net/http"
	"runtime/debug"
	"sync"

	"golang.org/x/net/http2"
)

// runLocked has a request served.
func (c *conn) runLocked(s *Stream) {
	if c.err != nil {
		return
	}
	c.handlers++
	c.running.Add(1)
	c.server.pool.run(s)
}

// serve calls the handler, and ends the answer unless it was detached.
func (s *Stream) serve() {
	c := s.conn
	r := s.request
	a := newAnswer(s, r)
	defer func() { // also of a handler that ends its goroutine
		a.release()
		c.mu.Lock()
		c.handlers--
		c.sendAndUnlock()
		c.running.Done()
	}()
	whole := s.handle(a, r)
	if !a.detached {
		if whole {
			a.end()
		}
		s.ctx.cancel()
	}
}

// handle calls the handler. One that panics, or ends its goroutine, has its stream reset.
func (s *Stream) handle(a *answer, r *http.Request) (whole bool) {
	defer func() {
		if whole {
			return
		}
		reason := recover()
		if !a.detached {
			s.fail(http2.ErrCodeInternal, nil)
		}
		if err, is := reason.(error); reason != nil && (!is || !errors.Is(err, http.ErrAbortHandler)) && s.conn.server.cfg.Log != nil {
			s.conn.server.cfg.Log.Printf("http2: panic serving %v: %v\n%s", r.RemoteAddr, reason, debug.Stack())
		}
	}()
	if _, tooLong := r.Header[tooLongKey]; tooLong {
		http.Error(a, http.StatusText(http.StatusRequestHeaderFieldsTooLarge), http.StatusRequestHeaderFieldsTooLarge)
		return true
	}
	s.conn.server.cfg.Handler.ServeHTTP(a, r)
	return true
}

// pool has requests served by goroutines that have served others: their stacks have grown.
type pool struct {
	mu      sync.Mutex
	idle    []*worker // the one that was used last is the last
	least   int       // of idle, since shrink was called
	closed  bool
	running sync.WaitGroup
}

// worker is one of these goroutines.
type worker struct{ next chan *Stream }

// run has a request served.
func (p *pool) run(s *Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.least = min(p.least, n-1)
		w.next <- s // there is room
		return
	}
	w := &worker{next: make(chan *Stream, 1)}
	p.running.Go(func() { p.work(w, s) })
}

func (p *pool) work(w *worker, s *Stream) {
	for s != nil {
		s.serve()
		if !p.rests(w) {
			return
		}
		s = <-w.next
	}
}

func (p *pool) rests(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.idle = append(p.idle, w)
	return true
}

// shrink ends goroutines that had nothing to do since it was last called.
func (p *pool) shrink() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle[:p.least] {
		w.next <- nil
	}
	p.idle = append([]*worker(nil), p.idle[p.least:]...)
	p.least = len(p.idle)
}

// close ends all, when all have served.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.idle {
		w.next <- nil
	}
	p.idle, p.least = nil, 0
	p.mu.Unlock()
	p.running.Wait()
}
