// Package h1stream serves watches over HTTP/1.1 without the buffers and the goroutine that package
// net/http keeps for each connection, which take more memory than the rest of a watch.
//
//	Hijacker.ConnContext  hijack.go    offers BeginWatch to the filter that has parsed a request
//	  response            hijack.go    the writer of a watch; Detach takes the connection from package net/http
//	  stream              stream.go    the response, in chunks, over a wire.Queue
//
// When the response has ended, the connection goes back to package net/http for the next request.
// Until then one goroutine with a small stack waits for the client to disconnect.
//
// Locks: Hijacker.mu and stream.mu are never held together. Goroutines: one for each hijacked
// connection; Close and Wait wait for it.
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

// Hijacker hijacks the connections of watches.
type Hijacker struct {
	reuse func(net.Conn)

	mu      sync.Mutex
	open    map[*tls.Conn]struct{} // hijacked connections
	closing bool                   // no further connection is hijacked
	running sync.WaitGroup         // a goroutine for each of open; added to under mu, unless closing
}

// New makes one. It calls reuse with each connection that can serve further requests.
func New(reuse func(net.Conn)) *Hijacker {
	return &Hijacker{reuse: reuse, open: map[*tls.Conn]struct{}{}}
}

// ConnContext returns the http.Server.ConnContext that makes wire.From find a wire.WatchConn.
func (h *Hijacker) ConnContext(ctx context.Context, c net.Conn) context.Context {
	ctx = wire.ConnContext(ctx, c)
	if socket, ok := wire.From(ctx).(*wire.Socket); ok {
		ctx = context.WithValue(ctx, wire.Key{}, wire.Conn(conn{socket, h}))
	}
	return ctx
}

// conn is the connection of a request.
type conn struct {
	*wire.Socket
	hijacker *Hijacker
}

// BeginWatch implements wire.WatchConn.
func (c conn) BeginWatch(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func()) {
	if r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Body != http.NoBody || r.Close || r.Method != http.MethodGet || r.Header["Upgrade"] != nil {
		return w, r, func() {}
	}
	// Package net/http ends the request's own context when the handler returns.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	d := &response{ResponseWriter: w, hijacker: c.hijacker, cancel: cancel, unlink: context.AfterFunc(r.Context(), cancel)}
	return d, r.WithContext(ctx), d.returned
}

// Close closes all hijacked connections, and waits for the end of their watches.
func (h *Hijacker) Close() {
	h.mu.Lock()
	h.closing = true
	for c := range h.open {
		_ = c.NetConn().Close() // the watch ends either way
	}
	h.mu.Unlock()
	h.running.Wait()
}

// Wait waits until all hijacked connections have been given back or closed, or ctx ends. From now on
// no connection is hijacked.
func (h *Hijacker) Wait(ctx context.Context) error {
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	done := make(chan struct{})
	go func() { // Close ends it at the latest
		defer close(done)
		h.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// response is the writer of a watch.
type response struct {
	http.ResponseWriter // that of package net/http, until the connection is hijacked
	hijacker            *Hijacker
	cancel              context.CancelFunc // ends the request
	unlink              func() bool        // cancel from the context that package net/http gave the request
	detached            bool
}

// Unwrap serves http.ResponseController.
func (d *response) Unwrap() http.ResponseWriter { return d.ResponseWriter }

// returned is called when the handler has returned.
func (d *response) returned() {
	if !d.detached {
		d.unlink()
		d.cancel()
	}
}

// Detach implements wire.Detacher.
func (d *response) Detach() (wire.Stream, bool) {
	h := d.hijacker
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return nil, false
	}
	header := d.Header()
	c, buf, err := http.NewResponseController(d.ResponseWriter).Hijack()
	if err != nil {
		return nil, false
	}
	t, socket := wire.Below(c)
	d.unlink() // a request that has ended remains so
	d.detached = true
	d.ResponseWriter = hijackedWriter{header}
	s := newStream(t, socket, d.cancel)
	s.last = s.last || buf.Reader.Buffered() > 0 || strings.EqualFold(header.Get("Connection"), "close")
	h.open[t] = struct{}{}
	h.running.Go(func() { h.attend(s) })
	return s, true
}

// attend waits for the end of the response, and gives the connection back or closes it.
func (h *Hijacker) attend(s *stream) {
	s.attend()
	s.cancel()
	h.mu.Lock()
	delete(h.open, s.tls)
	h.mu.Unlock()
	if !s.reusable() {
		_ = s.tls.Close() // the connection is unused
		return
	}
	h.reuse(s.tls)
}

// hijackedWriter replaces the writer of package net/http once the connection is hijacked.
type hijackedWriter struct{ header http.Header }

func (w hijackedWriter) Header() http.Header     { return w.header }
func (hijackedWriter) Write([]byte) (int, error) { return 0, http.ErrHijacked }
func (hijackedWriter) WriteHeader(int)           {}
