// Package wire is the layer between TLS and the sockets of clients, which the server's HTTP
// packages share.
//
// Package tls writes its records to a Socket, which has two modes. At first it joins full records,
// which package tls writes one by one, for a millisecond at most: that is what answers of package
// net/http go through. A connection whose writers must not wait for the client (HTTP/2 of package
// h2, watches over HTTP/1.1 of package h1stream) switches it to a queue: a write takes what the
// kernel has room for and keeps the rest in order, and Flush waits for it.
//
// Handlers find the connection of a request with From, so that they can announce
// what they are about to send.
//
// Locks: coalescer.mu before queue.mu; neither is held while anything else is locked, nor is that of a Poller.
// Goroutines: the timers of coalescers, which run once, and one of each Poller, which Close ends.
package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// Conn is the connection of a request. Handlers announce what they are about to write, so that the
// connection can combine it.
type Conn interface {
	// Cork announces that a response is written to its end without a pause. It may be buffered until
	// Uncork or the end of the response.
	Cork()
	Uncork()
	// AddWriter announces that one more watch of the connection is about to write. RemoveWriter announces
	// that it has written, or has nothing to write. The connection combines their writes.
	AddWriter()
	RemoveWriter()
	// ID identifies a connection of HTTP/2; it is 0 for HTTP/1.1.
	ID() uint64
	// MayBlock reports whether a response of n bytes needs a deadline, because the client's windows
	// may be too small for it.
	MayBlock(n int64) bool
}

// WatchConn is a Conn whose watches must be known before they are served: a watch can be
// detached only if BeginWatch was called. Its handler gets the writer and the request that BeginWatch
// returns; returned must be called when the handler has returned.
type WatchConn interface {
	Conn
	BeginWatch(w http.ResponseWriter, r *http.Request) (watched http.ResponseWriter, request *http.Request, returned func())
}

// Key is the key of the Conn in the context of a request.
type Key struct{}

// EndKey is the key of the function that ends the context of a request.
type EndKey struct{}

// From returns the connection of a request; nil if it has none of a Listener.
func From(ctx context.Context) Conn {
	c, _ := ctx.Value(Key{}).(Conn)
	return c
}

// EndOf returns the function that ends the context of a request, which saves another context; nil if
// there is none.
func EndOf(ctx context.Context) (end func()) {
	end, _ = ctx.Value(EndKey{}).(func())
	return end
}

// ConnContext returns the http.Server.ConnContext of a server on a Listener with TLS, for From.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if _, s := Below(c); s != nil {
		s.serverDeadline.Store(false)
		s.deadlineSet.Store(0)
		return context.WithValue(ctx, Key{}, Conn(s))
	}
	return ctx
}

// Below returns the socket of a Listener below TLS; nil if there is none.
func Below(c net.Conn) (*tls.Conn, *Socket) {
	t, ok := c.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	s, _ := t.NetConn().(*Socket)
	return t, s
}

var _ Conn = (*Socket)(nil)

// Headroom is the number of bytes at the beginning of a buffer that belong to the Stream that writes it.
const Headroom = 10

// Stream is the body of a response that its handler has detached. Any goroutine may write it, one at a
// time, and without waiting for the client, so that one goroutine can serve many clients.
type Stream interface {
	// TryWrite writes what follows Headroom in b, and does not wait. b may grow, and can be
	// reused. blocked means that the client is slow and that the rest is kept: then Flush or Write
	// must be called.
	TryWrite(b *[]byte) (blocked bool, err error)
	// Write is TryWrite, but waits while the client is slow. It fails if the client does not take everything
	// within WriteTimeout.
	Write(b *[]byte) error
	// Flush waits until everything that TryWrite kept is written, and fails like Write.
	Flush() error
	// Close ends the response. If it is not complete, the client can see that.
	Close(complete bool)
	// WhenEnded is context.AfterFunc, but f may run in the goroutine that ends ctx, so it must not
	// wait. ctx is the context of the request, or ends with it: when the client disconnects or
	// cancels, or EndOf's function is called.
	WhenEnded(ctx context.Context, f func()) (stop func() bool)
	// Over is called once, after Close, when nothing of the request runs any more. The connection
	// waits for it.
	Over()
}

// Detacher is a writer whose response can be detached after its header was flushed without a length. The
// context of the request then ends when the client disconnects or cancels, or with Over, and the
// handler may return. If ok is false, the handler has to go on with its writer.
type Detacher interface {
	Detach() (s Stream, ok bool)
}

// Detach detaches a response by the Detacher that the writer is or wraps.
func Detach(w http.ResponseWriter) (s Stream, ok bool) {
	for {
		switch t := w.(type) {
		case Detacher:
			return t.Detach()
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return nil, false
		}
	}
}
