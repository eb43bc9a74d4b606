// Package h1stream serves watches over HTTP/1.1 without what package net/http keeps for a
// connection, which is more than all else that a watch needs.
//
//	Hijacker.Handler    hijack.go    a request that may be a watch gets a goroutine of its own
//	  detachable        hijack.go    its writer; Detach takes the connection away from package net/http
//	  stream            stream.go    the answer, in chunks, over a wire.Queue
//
// When the answer has ended the connection goes back to serve the next request. Until then a
// goroutine waits for what the client sends, with as little stack as that takes: it notices when
// the client has gone.
//
// Locks: Hijacker.mu and stream.mu are held alone. Goroutines: those of Handler, which Close and
// Wait wait for.
package h1stream

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/server/wire"
)

// Hijacker serves watches so that their connections can be hijacked.
type Hijacker struct {
	back func(net.Conn)

	mu       sync.Mutex
	open     map[*tls.Conn]struct{} // connections that are hijacked now
	finished bool                   // no further request is served in a goroutine of its own
	cut      bool                   // Close was called: hijacked connections end
	wg       sync.WaitGroup         // goroutines of Handler; added to under mu, unless finished
}

// New makes one. back is given the connections that can serve other requests.
func New(back func(net.Conn)) *Hijacker {
	return &Hijacker{back: back, open: map[*tls.Conn]struct{}{}}
}

// Handler serves requests by next. Those that may be watches get a goroutine of their
// own, which goes on when package net/http has done with the request.
func (h *Hijacker) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mayBeWatch(r) || !h.begin() {
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
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Body != http.NoBody || r.Close || r.Method != http.MethodGet || r.Header["Upgrade"] != nil {
		return false
	}
	if !strings.Contains(r.URL.RawQuery, "watch=") && !strings.Contains(r.URL.Path, "/watch/") {
		return false
	}
	_, ok := wire.From(r.Context()).(*wire.Socket)
	return ok
}

// serve returns when the request has been served, or its connection is hijacked.
func (h *Hijacker) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	// The request's own context ends when this function returns.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	d := &detachable{ResponseWriter: w, hijacker: h, cancel: cancel, hijacked: make(chan struct{})}
	d.unlink = context.AfterFunc(r.Context(), cancel)
	ended := make(chan any, 1)
	r = r.WithContext(ctx)
	go func() { // Close waits for it
		defer h.wg.Done()
		defer func() {
			p := recover()
			if d.stream != nil {
				h.wg.Go(d.attend) // with as little stack as that takes
				return
			}
			cancel()
			d.unlink()
			ended <- p
		}()
		next.ServeHTTP(d, r)
	}()
	select {
	case <-d.hijacked:
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

// detachable is the writer of an answer whose connection can be hijacked.
type detachable struct {
	http.ResponseWriter // package net/http's, so that nothing of it is left once the connection is hijacked
	hijacker            *Hijacker
	cancel              context.CancelFunc // ends the request
	unlink              func() bool        // from the context that package net/http gave the request
	hijacked            chan struct{}      // closed when the connection is
	stream              *stream            // set then
}

// Unwrap serves http.ResponseController.
func (d *detachable) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// Detach implements wire.Detacher.
func (d *detachable) Detach() (wire.Stream, bool) {
	h, ok := d.ResponseWriter.(http.Hijacker)
	if !ok {
		return nil, false
	}
	header := d.Header()
	c, buf, err := h.Hijack()
	if err != nil {
		return nil, false
	}
	t, socket := wire.Below(c)
	if socket == nil {
		_ = c.Close() // it can neither be used nor given back
		return nil, false
	}
	d.unlink() // a request that has ended remains so
	d.stream = newStream(t, socket, d.cancel)
	d.stream.last = d.stream.last || buf.Reader.Buffered() > 0 || strings.EqualFold(header.Get("Connection"), "close")
	d.ResponseWriter = hijackedWriter{header}
	d.hijacker.note(t)
	close(d.hijacked)
	return d.stream, true
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

// attend waits until the answer is over, and gives the connection back or closes it.
func (d *detachable) attend() {
	s := d.stream
	s.attend()
	d.cancel()
	d.hijacker.forget(s.tls)
	if !s.reusable() {
		_ = s.tls.Close() // nobody uses it any more
		return
	}
	d.hijacker.back(s.tls)
}

// hijackedWriter is what is left of the writer of an answer whose connection is hijacked.
type hijackedWriter struct{ header http.Header }

func (w hijackedWriter) Header() http.Header     { return w.header }
func (hijackedWriter) Write([]byte) (int, error) { return 0, http.ErrHijacked }
func (hijackedWriter) WriteHeader(int)           {}
