package conns

import (
	"context"
	"crypto/tls"
	"net"
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
	// nothing after all. What the others write waits for it, for a millisecond at most.
	AddWriter()
	RemoveWriter()
	// ID tells connections of HTTP/2 apart; it is 0 for HTTP/1.1.
	ID() uint64
	// MayBlock says whether an answer of n bytes may have to wait for the client without
	// end, so that it needs a deadline.
	MayBlock(n int64) bool
}

type connKey struct{}

// FromContext finds the connection that a request came by; nil if it is none of a
// Listener.
func FromContext(ctx context.Context) Conn {
	c, _ := ctx.Value(connKey{}).(Conn)
	return c
}

// ConnContext is the http.Server.ConnContext of a server on a Listener with TLS. It
// makes FromContext find the connection. Those of HTTP/2 are replaced by ServeHTTP2.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if _, r := below(c); r != nil {
		r.serverDeadline.Store(false)
		r.deadlineSet.Store(0)
		return context.WithValue(ctx, connKey{}, Conn(r))
	}
	return ctx
}

// below finds the connection of a Listener below TLS; nil if there is none.
func below(c net.Conn) (*tls.Conn, *recordConn) {
	t, ok := c.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	r, _ := t.NetConn().(*recordConn)
	return t, r
}

// isHTTP1 says whether a request came by a connection of ConnContext.
func isHTTP1(ctx context.Context) bool {
	_, ok := ctx.Value(connKey{}).(*recordConn)
	return ok
}
