package conns

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Hijacker serves watches over HTTP/1.1 so that their connections can be hijacked. What
// package net/http keeps for a connection is more than all else that a watch needs, and
// is free once the watch has begun. When the answer has ended, the connection goes back
// to serve the next request.
type Hijacker struct {
	back     func(net.Conn)
	delivery *Delivery

	mu       sync.Mutex
	open     map[*tls.Conn]struct{} // connections that are hijacked now
	finished bool                   // no further request is served in a goroutine of its own
	cut      bool                   // Close was called: hijacked connections end
	wg       sync.WaitGroup         // goroutines of Handler; added to under mu, unless finished
}

// NewHijacker makes one. back is given the connections that can serve other requests.
func NewHijacker(d *Delivery, back func(net.Conn)) *Hijacker {
	return &Hijacker{back: back, delivery: d, open: map[*tls.Conn]struct{}{}}
}

// Handler serves requests by next. Those that may be watches get a goroutine of their
// own, which goes on when package net/http has done with the request.
func (h *Hijacker) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.delivery.Direct() || !mayBeWatch(r) || !h.begin() {
			next.ServeHTTP(w, r)
			return
		}
		h.serve(next, w, r)
	})
}

func (h *Hijacker) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.finished {
		h.wg.Add(1)
	}
	return !h.finished
}

// mayBeWatch says whether a request looks like a watch whose connection can be hijacked.
func mayBeWatch(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor == 1 && r.Body == http.NoBody && !r.Close && looksLikeWatch(r) &&
		r.Header["Upgrade"] == nil && isHTTP1(r.Context())
}

// serve returns when the request has been served, or its connection is hijacked.
func (h *Hijacker) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	// The request's own context ends when this function returns.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	hw := &hijackable{ResponseWriter: w, hijacker: h, cancel: cancel, hijacked: make(chan struct{})}
	hw.unlink = context.AfterFunc(r.Context(), cancel)
	ended := make(chan any, 1)
	r = r.WithContext(ctx)
	go func() { // Close waits for it
		defer h.wg.Done()
		defer func() {
			p := recover()
			if p == nil && hw.outlives() {
				h.wg.Go(hw.attend) // with as little stack as that takes
				return
			}
			cancel()
			hw.end(p != nil)
			ended <- p
		}()
		next.ServeHTTP(hw, r)
	}()
	select {
	case <-hw.hijacked:
	case p := <-ended:
		if p != nil {
			panic(p) // package net/http knows what to do
		}
	}
}

// Close cuts what is still under way, and waits for its end.
func (h *Hijacker) Close() {
	h.mu.Lock()
	h.finished, h.cut = true, true
	for c := range h.open {
		_ = c.NetConn().Close() // the connection ends, whatever Close says
	}
	h.mu.Unlock()
	h.wg.Wait()
}

// Wait waits until all that is under way has ended, or ctx has. No further request is
// served in a goroutine of its own.
func (h *Hijacker) Wait(ctx context.Context) error {
	h.mu.Lock()
	h.finished = true
	h.mu.Unlock()
	done := make(chan struct{})
	go func() { // Close ends it at the latest
		defer close(done)
		h.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hijackable is the writer of an answer whose connection can be hijacked.
type hijackable struct {
	http.ResponseWriter // package net/http's, so that nothing of it is left once the connection is hijacked
	hijacker            *Hijacker
	cancel              context.CancelFunc // ends the request
	unlink              func() bool        // from the context that package net/http gave the request
	hijacked            chan struct{}      // closed when the connection is
	stream              *http1Stream       // set then
}

// Unwrap serves http.ResponseController.
func (w *hijackable) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// hijack is an Opener's work.
func (w *hijackable) hijack() (Stream, error) {
	h, ok := w.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, fmt.Errorf("%w: its writer is %T", errTakeover, w.ResponseWriter)
	}
	header := w.Header()
	c, buf, err := h.Hijack()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTakeover, err)
	}
	t, r := below(c)
	if r == nil {
		_ = c.Close() // it can neither be used nor given back
		return nil, fmt.Errorf("the connection is %T, and not the one that was accepted", c)
	}
	w.unlink() // a request that has ended remains so
	w.stream = newHTTP1Stream(t, r, w.cancel)
	w.stream.last = w.stream.last || buf.Reader.Buffered() > 0 || strings.EqualFold(header.Get("Connection"), "close")
	w.ResponseWriter = hijackedWriter{header}
	w.hijacker.note(t)
	close(w.hijacked)
	return w.stream, nil
}

// note lets Close find a hijacked connection.
func (h *Hijacker) note(t *tls.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open[t] = struct{}{}
	if h.cut {
		_ = t.NetConn().Close() // Close has not seen it
	}
}

func (h *Hijacker) forget(t *tls.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, t)
}

// outlives says that the answer goes on although the handler has returned.
func (w *hijackable) outlives() bool { return w.stream != nil && w.stream.over != nil }

// attend waits until that answer has ended.
func (w *hijackable) attend() {
	w.stream.attend()
	w.cancel()
	w.end(false)
}

// end gives a hijacked connection back, or closes it.
func (w *hijackable) end(broken bool) {
	s := w.stream
	w.unlink()
	if s == nil {
		return
	}
	w.hijacker.forget(s.tls)
	if broken || !s.reusable() {
		_ = s.tls.Close() // nobody uses it any more
		return
	}
	w.hijacker.back(s.tls)
}

// hijackedWriter is what is left of the writer of an answer whose connection is hijacked.
type hijackedWriter struct{ header http.Header }

func (w hijackedWriter) Header() http.Header     { return w.header }
func (hijackedWriter) Write([]byte) (int, error) { return 0, http.ErrHijacked }
func (hijackedWriter) WriteHeader(int)           {}
