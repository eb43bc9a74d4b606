package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/server/h1stream"
	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/wire"
)

// front is the listener and its HTTP servers.
type front struct {
	hs      *http.Server       // nil: no listener
	h2      *h2.Server         // serves HTTP/2; nil: hs does
	hijacks *h1stream.Hijacker // serves watches on connections that hs has released; nil: hs serves them
	served  chan struct{}      // closed when hs has ended
	err     error              // the error of hs

	mu     sync.Mutex
	unused map[net.Conn]time.Time // connections without a request yet, and when each arrived
	ended  bool

	leaving atomic.Bool // requests are refused from now on
}

// idleFor is the idle timeout of connections.
const idleFor = 3 * time.Minute

// open starts serving.
func (s *Server) open() *front {
	f := &front{served: make(chan struct{}), unused: map[net.Conn]time.Time{}}
	if s.cfg.Listener == nil {
		return f
	}
	f.hs = &http.Server{
		TLSConfig: s.cfg.TLS.Clone(), ConnState: f.track, ConnContext: wire.ConnContext, Handler: s.handler,
		ReadHeaderTimeout: 32 * time.Second, IdleTimeout: idleFor, MaxHeaderBytes: 1 << 20,
		ErrorLog: quietLog(s.cfg.Log),
	}
	// Growing TLS records help browsers on slow lines only.
	f.hs.TLSConfig.DynamicRecordSizingDisabled = true
	// The buffer of a stream holds nearly every body, and that of a connection the bodies of all its streams.
	const perStream = 256 << 10
	f.hs.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: int(s.cfg.Serving.MaxStreams), MaxReadFrameSize: perStream, MaxReceiveBufferPerStream: perStream,
		MaxReceiveBufferPerConnection: perStream * int(s.cfg.Serving.MaxStreams),
	}
	f.hs.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
	if s.cfg.Serving.NoHTTP2 {
		f.hs.TLSConfig.NextProtos = []string{"http/1.1"}
		f.hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	f.hs.TLSConfig.VerifyPeerCertificate = shortChain
	if s.cfg.ClientAuthorities != nil {
		f.hs.TLSConfig.GetConfigForClient = acceptable(f.hs.TLSConfig.Clone(), s.cfg.ClientAuthorities)
	}
	own := s.cfg.Serving.HTTP2 != StandardHTTP2
	if own {
		f.h2 = h2.New(h2.Config{Handler: s.handler, MaxStreams: s.cfg.Serving.MaxStreams, MaxHeader: f.hs.MaxHeaderBytes, IdleTimeout: idleFor, Log: f.hs.ErrorLog})
	}
	listener := newHandshakes(wire.Listener{Listener: s.accepting}, f.hs.TLSConfig, handshakeFor, s.handshakeFailed, f.take)
	if own {
		f.hijacks = h1stream.New(func(c net.Conn) {
			if f.leaving.Load() {
				_ = c.Close() // as package net/http does with idle connections
				return
			}
			listener.hand(c)
		})
		f.hs.ConnContext = f.hijacks.ConnContext
	}
	go func() {
		defer close(f.served)
		defer listener.Close()
		f.err = f.hs.Serve(listener)
	}()
	return f
}

// take serves a connection if it has negotiated HTTP/2 and the mode is OwnHTTP2.
func (f *front) take(c *tls.Conn) bool {
	if f.h2 == nil || c.ConnectionState().NegotiatedProtocol != "h2" {
		return false
	}
	f.h2.Serve(c)
	return true
}

// track records connections without a request. Closing them breaks no request, and package net/http would
// wait five seconds for each that its client does not close.
func (f *front) track(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state != http.StateNew {
		delete(f.unused, c)
		return
	}
	if f.ended {
		_ = c.Close() // accepted while the listener was being closed
		return
	}
	f.unused[c] = time.Now()
}

// closeUnused closes connections without a request. Unless all is set, new ones get some time to send one.
func (f *front) closeUnused(all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = f.ended || all
	for c, since := range f.unused {
		if all || time.Since(since) >= requestGrace {
			_ = c.Close() // an error does not matter: the connection ends
		}
	}
}

// close stops serving immediately.
func (f *front) close() {
	if f.hs == nil {
		return
	}
	_ = f.hs.Close() // the listener's error is of no use now
	<-f.served
	f.closeOwn()
}

// closeOwn closes the connections that package net/http does not serve.
func (f *front) closeOwn() {
	if f.h2 != nil {
		f.h2.Close()
	}
	if f.hijacks != nil {
		f.hijacks.Close()
	}
}

// How long clients have to send a request that they were about to send.
const (
	requestGrace = 250 * time.Millisecond
	shortRound   = 5 * time.Millisecond
)

// finish accepts no more connections, sends GOAWAY or Connection: close, and waits until requests in flight
// are done.
func (f *front) finish(ctx context.Context) error {
	f.leaving.Store(true)
	drained := make(chan error, 1)
	go func() { // it ends with ctx at the latest
		if f.h2 == nil {
			drained <- nil
			return
		}
		drained <- f.h2.Drain(ctx)
	}()
	err := f.finishStandard(ctx)
	return errors.Join(err, <-drained)
}

// finishStandard is finish for package net/http. Each round leaves time for clients that have just connected
// or sent something.
func (f *front) finishStandard(ctx context.Context) error {
	// A connection whose handshake ends after Shutdown gets no GOAWAY, and Shutdown would wait until it has
	// been idle for minutes. Therefore Shutdown is called repeatedly.
	for began := time.Now(); ; {
		late := time.Since(began) >= requestGrace
		round := shortRound
		if late {
			round = requestGrace
		}
		part, cancel := context.WithTimeout(ctx, round)
		err := f.hs.Shutdown(part)
		cancel()
		f.closeUnused(time.Since(began) >= requestGrace)
		if err == nil {
			if f.hijacks == nil {
				return nil
			}
			return f.hijacks.Wait(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// drain stops serving without breaking requests: readyz fails, the server continues for the delay that load
// balancers need, watches end, no new connections are accepted, and requests in flight finish.
func (s *Server) drain(f *front) error {
	s.cfg.Log.Info("draining")
	s.Health.Drain()
	if s.cfg.ShutdownDelay > 0 {
		time.Sleep(s.cfg.ShutdownDelay)
	}
	close(s.leaving)
	if f.h2 != nil && !s.cfg.Serving.RefuseLeaving {
		f.h2.GoAway() // first: then GOAWAY leaves with the ends of watches, and clients do not renew them here
	}
	s.endWatches()
	ctx, cancel := context.WithTimeout(context.Background(), max(s.cfg.ShutdownGrace, s.cfg.Serving.WatchGrace))
	defer cancel()
	if s.cfg.Serving.RefuseLeaving || f.hs == nil {
		s.waitIdle(ctx)
	}
	if f.hs == nil {
		return nil
	}
	err := f.finish(ctx)
	if err != nil {
		err = errors.Join(err, f.hs.Close())
	}
	<-f.served
	f.closeOwn()
	return err
}

// waitIdle waits until no request runs; new ones are refused.
func (s *Server) waitIdle(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for s.running.Load() > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// quietLog logs the messages of net/http, most of which are about clients that disconnect.
func quietLog(to *slog.Logger) *log.Logger { return log.New(waitIdle{to}, "", 0) }

type waitIdle struct{ to *slog.Logger }

func (q waitIdle) Write(p []byte) (int, error) {
	q.to.Debug("http server", "message", strings.TrimSpace(string(p)))
	return len(p), nil
}

func (s *Server) handshakeFailed(from net.Addr, err error) {
	s.Metrics.HandshakeFailed()
	s.cfg.Log.Debug("a TLS handshake failed", "from", from.String(), "error", err)
}
