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

// front is the listener with what speaks HTTP on it.
type front struct {
	hs      *http.Server       // nil: nothing is listened on
	h2      *h2.Server         // connections of HTTP/2 are its; nil: they are of hs
	hijacks *h1stream.Hijacker // watches whose connections hs has given away; nil: it has given away none
	served  chan struct{}      // closed when it has ended
	err     error              // that ended it

	mu    sync.Mutex
	mute  map[net.Conn]time.Time // connections that have not asked for anything yet: since when
	ended bool

	leaving atomic.Bool // nobody is to send another request
}

// idleFor is how long a connection may be without a request.
const idleFor = 3 * time.Minute

// open begins to serve.
func (s *Server) open() (*front, error) {
	f := &front{served: make(chan struct{}), mute: map[net.Conn]time.Time{}}
	if s.cfg.Listener == nil {
		return f, nil
	}
	f.hs = &http.Server{
		TLSConfig: s.cfg.TLS.Clone(), ConnState: f.track, ConnContext: wire.ConnContext, Handler: s.handler,
		ReadHeaderTimeout: 32 * time.Second, IdleTimeout: idleFor, MaxHeaderBytes: 1 << 20,
		ErrorLog: quietLog(s.cfg.Log),
	}
	// Small records first are for browsers on slow lines.
	f.hs.TLSConfig.DynamicRecordSizingDisabled = true
	// A stream's buffer holds nearly every body; a connection's those of all its streams.
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
				_ = c.Close() // as package net/http closes those that are idle
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
	return f, nil
}

// take serves a connection itself if HTTP/2 was agreed on and package net/http is not to.
func (f *front) take(c *tls.Conn) bool {
	if f.h2 == nil || c.ConnectionState().NegotiatedProtocol != "h2" {
		return false
	}
	f.h2.Serve(c)
	return true
}

// track notes connections that have not said anything yet: nobody's request is broken when they
// are closed, and package net/http would wait five seconds for each that its client does not close.
func (f *front) track(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state != http.StateNew {
		delete(f.mute, c)
		return
	}
	if f.ended {
		_ = c.Close() // it came while the listener was being closed
		return
	}
	f.mute[c] = time.Now()
}

// hangUp closes the connections on which nobody waits for anything. Unless all are to go,
// those that have just come have some time to say what they want.
func (f *front) hangUp(all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = f.ended || all
	for c, since := range f.mute {
		if all || time.Since(since) >= lastWords {
			_ = c.Close() // whatever it says, it is over
		}
	}
}

// close ends serving at once.
func (f *front) close() {
	if f.hs == nil {
		return
	}
	_ = f.hs.Close() // the listener's error is of no use any more
	<-f.served
	f.closeOwn()
}

// closeOwn ends what package net/http does not serve.
func (f *front) closeOwn() {
	if f.h2 != nil {
		f.h2.Close()
	}
	if f.hijacks != nil {
		f.hijacks.Close()
	}
}

// How long clients have to say what they were just about to.
const (
	lastWords  = 250 * time.Millisecond
	shortRound = 5 * time.Millisecond
)

// finish takes no new connections, tells clients to leave, and waits until what is
// under way is done.
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

// finishStandard does that for what package net/http serves. Each round gives clients that have
// just connected, or just sent something, the time to say so.
func (f *front) finishStandard(ctx context.Context) error {
	// A connection whose handshake ends after Shutdown has told all others is told by
	// nobody, and would be waited for until it had been idle for minutes. So everybody
	// is told again, now and then.
	for began := time.Now(); ; {
		late := time.Since(began) >= lastWords
		round := shortRound
		if late {
			round = lastWords
		}
		part, cancel := context.WithTimeout(ctx, round)
		err := f.hs.Shutdown(part)
		cancel()
		f.hangUp(time.Since(began) >= lastWords)
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

// drain ends serving without breaking anybody's request: readyz turns red, the
// server goes on for the delay that load balancers need, then watches end, no new
// connections are accepted and requests in flight finish.
func (s *Server) drain(f *front) error {
	s.cfg.Log.Info("draining")
	s.Health.Drain()
	if s.cfg.ShutdownDelay > 0 {
		time.Sleep(s.cfg.ShutdownDelay)
	}
	close(s.leaving)
	if f.h2 != nil && !s.cfg.Serving.RefuseLeaving {
		f.h2.GoAway() // first, so that no client asks for its watches again here
	}
	s.endWatches()
	ctx, cancel := context.WithTimeout(context.Background(), max(s.cfg.ShutdownGrace, s.cfg.Serving.WatchGrace))
	defer cancel()
	if s.cfg.Serving.RefuseLeaving || f.hs == nil {
		s.quiet(ctx)
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

// quiet waits until no request runs, while new ones are refused.
func (s *Server) quiet(ctx context.Context) {
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

// quietLog brings what net/http has to say into the server's log, at a level where
// clients that hang up do not matter.
func quietLog(to *slog.Logger) *log.Logger { return log.New(quiet{to}, "", 0) }

type quiet struct{ to *slog.Logger }

func (q quiet) Write(p []byte) (int, error) {
	q.to.Debug("http server", "message", strings.TrimSpace(string(p)))
	return len(p), nil
}

func (s *Server) handshakeFailed(from net.Addr, err error) {
	s.Metrics.HandshakeFailed()
	s.cfg.Log.Debug("a TLS handshake failed", "from", from.String(), "error", err)
}
