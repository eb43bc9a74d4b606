package conns

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Hijacker lets answers that last leave package net/http: once a watch over HTTP/1.1 has
// begun, its connection is a Stream, and what net/http keeps for a connection, more
// than all else that a watch needs, is free. When the answer has ended, the connection
// goes back to serve the next request.
type Hijacker struct {
	back func(net.Conn)

	mu     sync.Mutex
	open   map[*tls.Conn]struct{} // connections of answers that have left
	closed bool                   // nothing is served apart any more
	cut    bool                   // nor goes on
	wg     sync.WaitGroup         // is added to under mu, unless closed
}

// NewHijacker makes one. back is given the connections that can serve other requests.
func NewHijacker(back func(net.Conn)) *Hijacker {
	return &Hijacker{back: back, open: map[*tls.Conn]struct{}{}}
}

// Handler serves requests by next; those that may last in goroutines of their own.
func (a *Hijacker) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mayLast(r) || !a.begin() {
			next.ServeHTTP(w, r)
			return
		}
		a.serve(next, w, r)
	})
}

func (a *Hijacker) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.wg.Add(1)
	}
	return !a.closed
}

// mayLast says whether a request looks like a watch that can be served apart.
func mayLast(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor == 1 && r.Method == http.MethodGet && r.Body == http.NoBody && !r.Close &&
		(strings.Contains(r.URL.RawQuery, "watch=") || strings.Contains(r.URL.Path, "/watch/")) &&
		r.Header["Upgrade"] == nil && overTLS(r.Context())
}

// serve returns when the request has been served, or has left.
func (a *Hijacker) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	// The request's own context ends when this function returns.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	d := &departure{ResponseWriter: w, apart: a, cancel: cancel, left: make(chan struct{})}
	d.unlink = context.AfterFunc(r.Context(), cancel)
	ended := make(chan any, 1)
	r = r.WithContext(ctx)
	go func() { // Close waits for it
		defer a.wg.Done()
		defer func() {
			p := recover()
			cancel()
			d.end(p != nil)
			ended <- p
		}()
		next.ServeHTTP(d, r)
	}()
	select {
	case <-d.left:
	case p := <-ended:
		if p != nil {
			panic(p) // package net/http knows what to do
		}
	}
}

// Close cuts what is still under way, and waits for its end.
func (a *Hijacker) Close() {
	a.mu.Lock()
	a.closed, a.cut = true, true
	for c := range a.open {
		_ = c.NetConn().Close() // whatever it says, it is over
	}
	a.mu.Unlock()
	a.wg.Wait()
}

// Wait waits until all has ended, or ctx has. Nothing else is served apart any more.
func (a *Hijacker) Wait(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	done := make(chan struct{})
	go func() { // Close, at the latest, ends it
		defer close(done)
		a.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// departure is the writer of an answer that may leave.
type departure struct {
	http.ResponseWriter // package net/http's; nothing of it is left once the answer has left
	apart               *Hijacker
	cancel              context.CancelFunc // ends the request
	unlink              func() bool        // from the request as package net/http sees it
	left                chan struct{}      // closed when the answer leaves
	stream              *chunked           // then
}

// Unwrap serves http.ResponseController.
func (d *departure) Unwrap() http.ResponseWriter { return d.ResponseWriter }

func (d *departure) leave() Stream {
	h, ok := d.ResponseWriter.(http.Hijacker)
	if !ok || d.stream != nil {
		return nil
	}
	header := d.Header()
	c, buf, err := h.Hijack()
	if err != nil {
		return nil
	}
	d.unlink() // a request that has ended remains so
	t := c.(*tls.Conn)
	d.stream = newChunked(t, d.cancel)
	d.stream.last = buf.Reader.Buffered() > 0 || strings.EqualFold(header.Get("Connection"), "close")
	d.ResponseWriter = departed{header}
	d.apart.mu.Lock()
	d.apart.open[t] = struct{}{}
	if d.apart.cut {
		_ = t.NetConn().Close() // Close has not seen it
	}
	d.apart.mu.Unlock()
	close(d.left)
	return d.stream
}

// end gives a connection back, or closes it.
func (d *departure) end(broken bool) {
	s := d.stream
	d.unlink()
	if s == nil {
		return
	}
	d.apart.mu.Lock()
	delete(d.apart.open, s.tls)
	d.apart.mu.Unlock()
	if broken || !s.reusable() {
		_ = s.tls.Close() // nobody is there
		return
	}
	d.apart.back(s.tls)
}

// departed is what is left of a writer.
type departed struct{ header http.Header }

func (d departed) Header() http.Header     { return d.header }
func (departed) Write([]byte) (int, error) { return 0, http.ErrHijacked }
func (departed) WriteHeader(int)           {}
