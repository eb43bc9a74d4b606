// Package h2 is an HTTP/2 server for connections whose TLS handshake is complete. It serves two kinds
// of requests well: short ones, many a second on few connections, and watches, which send little for
// hours on many connections.
//
//	Server.Serve          server.go    accepts a connection, whose state is in conn.go
//	  newConn             lifecycle.go its beginning, timeouts and end
//	  conn.serve          reader.go    one goroutine reads its frames
//	    conn.process      frames.go    handles each frame
//	      headers         headers.go   makes a request of a header block
//	      limits          limits.go    bounds what a client may send
//	    startLocked       handler.go   a goroutine of the pool calls the handler
//	      response        response.go  the http.ResponseWriter
//	      body            body.go      the request body
//	      Stream          stream.go    flow control; writes the response, with or without a handler
//	        conn.flush    write.go     sends queued frames
//	Server.Drain          drain.go     closes connections gracefully
//
// Reading. One goroutine reads a connection. It never waits for a handler, nor for the client to read
// something. When the client has sent nothing for a second, the connection is parked: the goroutine ends, its
// buffers go back to a pool, and one goroutine waits for all parked connections (wire.Poller).
//
// Writing. A handler, the reader, or the goroutine that delivers an event to many watches appends
// whole frames to the connection's queue (conn.out), and sends the queue unless another goroutine is
// sending it. A slow client blocks none of them: the socket keeps what the kernel does not accept
// (wire.Queue), and a goroutine that ends with the backlog sends the rest. Meanwhile handlers wait for
// the client, and detached streams keep their output (Stream).
//
// Locks. conn.mu guards a connection's streams, windows and queue. It is held only to append frames, with
// no other lock but that of wire.Poller. The locks of package tls and of wire.Queue are taken without conn.mu. Server.mu and
// pool.mu are never held with another lock.
//
// Goroutines. Each connection that is not parked has one reader, which waits for the connection's handlers and detached
// streams before it ends; one writer while its client is slow; and handlers, whose goroutines are reused
// (pool). Each server has one ticker for timeouts, and one poller. Close waits for all of them.
//
// A watch is a stream without a handler: the handler detaches it (wire.Detach) and returns. Over ends it.
package h2

import (
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// Config configures a Server.
type Config struct {
	Handler     http.Handler
	MaxStreams  uint32        // concurrent requests of a connection, watches included; default 100
	MaxHeader   int           // bytes of the headers of a request; default 1 MB
	IdleTimeout time.Duration // of a connection without requests; default 3 minutes
	Log         *log.Logger   // for panics; default: none
	Clock       time.Duration // how often timeouts are checked; default a second
}

// drainRound is the interval of checks while the server drains.
const drainRound = 5 * time.Millisecond

// Server serves connections.
type Server struct {
	cfg  Config
	hs   *http.Server // what handlers find as http.ServerContextKey
	pool pool

	poller *wire.Poller // of parked connections
	dates  dates

	mu       sync.Mutex
	conns    map[*conn]struct{}
	draining bool
	closed   bool

	running sync.WaitGroup // connections and the ticker; added to under mu, unless closed
	stop    context.CancelFunc
}

// New makes a server. Close must be called.
func New(cfg Config) *Server {
	cfg.MaxStreams = cmp.Or(cfg.MaxStreams, 100)
	cfg.MaxHeader = cmp.Or(cfg.MaxHeader, http.DefaultMaxHeaderBytes)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, 3*time.Minute)
	cfg.Clock = cmp.Or(cfg.Clock, time.Second)
	s := &Server{cfg: cfg, hs: &http.Server{}, poller: wire.NewPoller(), conns: map[*conn]struct{}{}}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.tick(ctx) })
	return s
}

// Serve serves a connection in a goroutine of its own. The handshake is complete and has negotiated
// HTTP/2; below TLS is a wire.Socket.
func (s *Server) Serve(t *tls.Conn) {
	_, socket := wire.Below(t)
	if socket == nil {
		socket = wire.NewSocket(t.NetConn())
	}
	c := newConn(s, t, socket)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = t.NetConn().Close() // nothing was sent yet
		return
	}
	s.conns[c] = struct{}{}
	s.running.Go(c.begin)
	if s.draining {
		s.running.Go(c.drain)
	}
}

// Conns returns the number of connections.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// remove is called when a connection has ended.
func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// each calls f for each connection.
func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	list := slices.AppendSeq(make([]*conn, 0, len(s.conns)), maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range list {
		f(c)
	}
}

// tick checks timeouts until ctx ends.
func (s *Server) tick(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Clock)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			s.each(func(c *conn) { c.checkTimeouts(now) })
			s.pool.shrink()
		}
	}
}

// GoAway asks all clients to send new requests elsewhere, and begins to close their connections, new ones included. Drain
// must follow: until then the ends of detached streams are not sent, nor is GOAWAY on a connection that has such streams.
func (s *Server) GoAway() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.each(func(c *conn) { c.drain() })
}

// Drain closes all connections gracefully, new ones included. It waits until all responses are
// complete and all connections closed, or until ctx ends.
func (s *Server) Drain(ctx context.Context) error {
	s.GoAway()
	ticker := time.NewTicker(drainRound)
	defer ticker.Stop()
	for s.Conns() > 0 {
		select {
		case <-ctx.Done():
			s.each(func(c *conn) { c.checkDrain(time.Now()) }) // sends the ends of the last streams
			return ctx.Err()
		case now := <-ticker.C:
			s.each(func(c *conn) { c.checkDrain(now) })
		}
	}
	return nil
}

// Close closes all connections, and waits for their goroutines.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.each(func(c *conn) { c.abort() })
	s.stop()
	s.running.Wait()
	s.poller.Close()
	s.pool.close()
}
