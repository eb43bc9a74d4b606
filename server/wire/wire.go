// Package wire is the layer between TLS and the sockets of clients, which the server's HTTP
// packages share.
//
// A Socket is what package tls writes its records to. It has two modes. At first it joins full
// records, which package tls writes one by one, for a millisecond at most: that is what
// answers of package net/http go through. A connection whose writers must not wait for the
// client (HTTP/2 of package h2, watches over HTTP/1.1 of package h1stream) switches it to a
// queue: a write takes what the kernel has room for and keeps the rest in order, and Flush
// waits for it.
//
// It also tells handlers which connection a request came by (From), so that they can announce
// what they are about to send.
//
// Locks: coalescer.mu before queue.mu; neither is held while anything else is locked. The only
// goroutines are the timers of coalescers, which run once.
package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// Conn is the connection of a request. Handlers use it to say what they are about to
// send, so that it can leave in few large pieces.
type Conn interface {
	// Cork says that an answer is now written to its end without a pause, so that it may
	// be collected, until Uncork is called. What was collected is sent then, or with the
	// end of the answer.
	Cork()
	Uncork()
	// AddWriter says that one more of the requests that share the connection has
	// something to send at once. RemoveWriter says that it has handed that over, or has
	// nothing after all. What watches write meanwhile is sent together.
	AddWriter()
	RemoveWriter()
	// ID tells connections of HTTP/2 apart; it is 0 for HTTP/1.1.
	ID() uint64
	// MayBlock says whether an answer of n bytes may have to wait for the client without
	// end, so that it needs a deadline.
	MayBlock(n int64) bool
}

// WatchConn is a Conn whose requests have to be told apart before they are served: a watch can be
// detached only if BeginWatch was called. Its handler gets the writer and the request that BeginWatch
// returns; returned must be called when the handler has returned.
type WatchConn interface {
	Conn
	BeginWatch(w http.ResponseWriter, r *http.Request) (watched http.ResponseWriter, request *http.Request, returned func())
}

// Key is the key of a connection in the context of a request. Contexts of other packages
// answer it with a Conn.
type Key struct{}

// EndKey is the key of the function that ends the context of a request.
type EndKey struct{}

// From finds the connection that a request came by; nil if it came by none of a Listener.
func From(ctx context.Context) Conn {
	c, _ := ctx.Value(Key{}).(Conn)
	return c
}

// EndOf is what ends the context of a request, so that nobody needs another context for
// that; nil where the context does not say.
func EndOf(ctx context.Context) (end func()) {
	end, _ = ctx.Value(EndKey{}).(func())
	return end
}

// ConnContext is the http.Server.ConnContext of a server on a Listener with TLS. It makes
// From find the connection.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if _, s := Below(c); s != nil {
		s.serverDeadline.Store(false)
		s.deadlineSet.Store(0)
		return context.WithValue(ctx, Key{}, Conn(s))
	}
	return ctx
}

// Below finds the socket of a Listener below TLS; nil if there is none.
func Below(c net.Conn) (*tls.Conn, *Socket) {
	t, ok := c.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	s, _ := t.NetConn().(*Socket)
	return t, s
}

var _ Conn = (*Socket)(nil)

// Headroom is what must be left free at the beginning of what is given to a Stream.
const Headroom = 10

// Stream is the body of an answer without a handler: the handler has detached it, and whoever
// has it writes it from any goroutine. What is written need not wait for the client, so that a
// goroutine that serves many clients can write to each. Only one goroutine at a time may write.
type Stream interface {
	// TryWrite writes what stands in b behind Headroom, and does not wait. b may grow, and
	// can be used again. blocked says that the client is slow and that something has been
	// kept: then Flush must be called, or Write.
	TryWrite(b *[]byte) (blocked bool, err error)
	// Write is TryWrite, but waits while the client is slow. A client that is slow for too
	// long has gone.
	Write(b *[]byte) error
	// Flush waits until all that TryWrite kept has been written.
	Flush() error
	// Close ends the answer. complete says that the client is to know that it is whole.
	Close(complete bool)
	// WhenEnded has f called when ctx ends, unless stop was called before: as context.AfterFunc
	// does, but maybe by whoever ends it, so f must not wait. ctx is the request's, or has no
	// other end than that: when the client has gone or wants no more, or EndOf is called.
	WhenEnded(ctx context.Context, f func()) (stop func() bool)
	// Over says, once, after Close, that all is done that the request's end asks for. The
	// connection waits for it.
	Over()
}

// Detacher is a writer whose answer can be detached once its header has been flushed, without
// a length. The request's context then lasts until the client has gone, wants no more of it,
// or Over is called; the handler may return at any time. ok is false, and the handler goes on
// with its writer, where that cannot be done.
type Detacher interface {
	Detach() (s Stream, ok bool)
}

// Detach finds the Detacher of a request among the writers around it, and detaches its answer.
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
