// Package h2 is an HTTP/2 server for connections that come with their TLS handshake done. It is
// made for two kinds of requests: short ones, many a second over few connections, and watches,
// which say little for hours over many.
//
//	Server.Serve          server.go    a connection is taken
//	  conn.serve          conn.go      one goroutine reads its frames
//	    conn.process      frames.go    what each frame means
//	      headers         headers.go   a block of headers becomes a request
//	      limits          limits.go    what a client may send
//	    conn.run          handler.go   a goroutine of the pool calls the handler
//	      answer          answer.go    its http.ResponseWriter
//	      body            body.go      its request's body
//	      Stream          stream.go    windows; the answer as the wire has it, with or without a handler
//	        conn.pump     write.go     frames are sent
//	Server.Drain          drain.go     clients are told to go away
//
// Reading. One goroutine reads a connection and never waits for a handler or for the client to
// take something. When the client has sent nothing for a second, the goroutine and its buffers
// are given up, and a small one waits for the socket to become readable.
//
// Writing. Whoever has something to say, a handler, the reader or the goroutine that sends an
// event to many watches, appends whole frames to the connection's one queue (conn.out) and sends
// what is queued if nobody else is doing so. Nothing waits for a slow client there: what the
// kernel does not take is kept by the socket (wire.Queue), and a goroutine that lasts until the
// client has taken it goes on. Handlers wait meanwhile, and answers without handlers keep what
// they have to say (Stream).
//
// Locks: conn.mu guards a connection's streams, windows and queue. It is held for as long as it
// takes to append frames, and while nothing else is locked. Then, none of them with conn.mu held,
// come the locks of package tls and of wire.Queue. Server.mu and the pool's are held alone.
//
// Goroutines: a reader for each connection, which ends with it and then waits for its handlers
// and for the answers without handlers; one that writes while a client is slow; handlers, which
// are reused (pool); one ticker of the server for everything that depends on time. Close waits
// for all of them.
//
// An answer is a watch's by design without a handler: the handler detaches it (wire.Detach) and
// returns; Over says that it has ended.
package h2

import (
	"cmp"
	"context"
	"crypto/tls"
	"log"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// Config is what a Server is made of.
type Config struct {
	Handler     http.Handler
	MaxStreams  uint32        // requests at once on a connection, watches included; default 100
	MaxHeader   int           // bytes of the headers of a request; default 1 MB
	IdleTimeout time.Duration // of a connection without requests; default 3 minutes
	Log         *log.Logger   // is told of handlers that panic; default: nobody
	Clock       time.Duration // how often what depends on time is looked at; default a second
}

// Server serves connections.
type Server struct {
	cfg   Config
	hs    *http.Server // what handlers find as http.ServerContextKey
	pool  pool
	dates dates

	mu       sync.Mutex
	conns    map[*conn]struct{}
	draining bool
	closed   bool

	running sync.WaitGroup // connections, and the ticker; added to under mu, unless closed
	stop    context.CancelFunc
}

// lastID numbers connections.
var lastID atomic.Uint64

// New makes a server. Close must be called.
func New(cfg Config) *Server {
	cfg.MaxStreams = cmp.Or(cfg.MaxStreams, 100)
	cfg.MaxHeader = cmp.Or(cfg.MaxHeader, http.DefaultMaxHeaderBytes)
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, 3*time.Minute)
	cfg.Clock = cmp.Or(cfg.Clock, time.Second)
	s := &Server{cfg: cfg, hs: &http.Server{}, conns: map[*conn]struct{}{}}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.tick(ctx) })
	return s
}

// Serve serves a connection in a goroutine of its own. Its handshake is done and HTTP/2 was
// agreed on; below TLS is a wire.Socket.
func (s *Server) Serve(t *tls.Conn) {
	_, socket := wire.Below(t)
	if socket == nil {
		socket = wire.NewSocket(t.NetConn(), 0)
	}
	c := newConn(s, t, socket)
	c.greet()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = t.NetConn().Close() // nobody has been told anything yet
		return
	}
	s.conns[c] = struct{}{}
	s.running.Go(c.begin)
	if s.draining {
		s.running.Go(c.farewell)
	}
}

// Conns is how many connections there are.
func (s *Server) Conns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// forget is called when a connection has ended.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// each calls f for all connections.
func (s *Server) each(f func(*conn)) {
	s.mu.Lock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	s.mu.Unlock()
	for _, c := range list {
		f(c)
	}
}

// tick looks after what depends on time.
func (s *Server) tick(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Clock)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			s.each(func(c *conn) { c.look(now) })
			s.pool.shrink()
		}
	}
}

// Close ends all connections at once, and waits for everything that they have started.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.each(func(c *conn) { c.close() })
	s.stop()
	s.running.Wait()
	s.pool.close()
}
