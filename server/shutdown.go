package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/conns"
)

// front is the listener with what speaks HTTP on it.
type front struct {
	hs      *http.Server    // nil: nothing is listened on
	hijacks *conns.Hijacker // watches whose connections hs has given away
	served  chan struct{}   // closed when it has ended
	err     error           // that ended it

	mu    sync.Mutex
	mute  map[net.Conn]time.Time        // connections that have not asked for anything yet, and of HTTP/2 those that ask for nothing now: since when
	both  map[net.Conn]*conns.HTTP2Conn // all of HTTP/2
	ended bool

	leaving atomic.Bool // nobody is to send another request
}

// open begins to serve.
func (s *Server) open() (*front, error) {
	f := &front{served: make(chan struct{}), mute: map[net.Conn]time.Time{}, both: map[net.Conn]*conns.HTTP2Conn{}}
	if s.cfg.Listener == nil {
		return f, nil
	}
	f.hs = &http.Server{
		TLSConfig: s.cfg.TLS.Clone(), ConnState: f.track, ConnContext: conns.ConnContext,
		ReadHeaderTimeout: 32 * time.Second, IdleTimeout: 3 * time.Minute, MaxHeaderBytes: 1 << 20,
		ErrorLog: quietLog(s.cfg.Log),
	}
	// Small records first are for browsers on slow lines.
	f.hs.TLSConfig.DynamicRecordSizingDisabled = true
	// A stream's buffer holds nearly every body; a connection's those of all its streams.
	const perStream = 256 << 10
	h2 := &http2.Server{
		IdleTimeout: 3 * time.Minute, MaxConcurrentStreams: s.cfg.Serving.MaxStreams,
		MaxReadFrameSize: perStream, MaxUploadBufferPerStream: perStream, MaxUploadBufferPerConnection: perStream * int32(s.cfg.Serving.MaxStreams),
	}
	if s.cfg.Serving.NoHTTP2 {
		f.hs.TLSConfig.NextProtos = []string{"http/1.1"}
		f.hs.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	} else if err := conns.ServeHTTP2(f.hs, h2, s.delivery, s.short()); err != nil {
		return nil, err
	}
	if protos := &f.hs.TLSConfig.NextProtos; !slices.Contains(*protos, "http/1.1") {
		*protos = append(*protos, "http/1.1") // http2.ConfigureServer has added its own
	}
	f.hs.TLSConfig.VerifyPeerCertificate = shortChain
	if s.cfg.ClientAuthorities != nil {
		f.hs.TLSConfig.GetConfigForClient = acceptable(f.hs.TLSConfig.Clone(), s.cfg.ClientAuthorities)
	}
	listener := newHandshakes(conns.Listener{Listener: s.accepting}, f.hs.TLSConfig, handshakeFor, s.handshakeFailed)
	f.hijacks = conns.NewHijacker(s.delivery, func(c net.Conn) {
		if f.leaving.Load() {
			_ = c.Close() // as package net/http closes those that are idle
			return
		}
		listener.hand(c)
	})
	f.hs.Handler = f.hijacks.Handler(s.handler)
	s.delivery.SelfTest(!s.cfg.Serving.NoHTTP2)
	go func() {
		defer close(f.served)
		defer listener.Close()
		f.err = f.hs.Serve(listener)
	}()
	return f, nil
}

// track notes connections that have not said anything yet, and those of HTTP/2 without a
// request: nobody's request is broken when they are closed, and the HTTP packages would
// wait five seconds, or one, for each that its client does not close.
func (f *front) track(c net.Conn, state http.ConnState) {
	h2 := conns.HTTP2Of(c)
	ok := h2 != nil
	if ok {
		c = h2.Conn // which is how it was new, and will be closed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok && state != http.StateClosed {
		f.both[c] = h2
	} else {
		delete(f.both, c)
	}
	if state != http.StateNew && !(ok && state == http.StateIdle) {
		delete(f.mute, c)
		return
	}
	if f.ended && !ok {
		_ = c.Close() // it came while the listener was being closed
		return
	}
	f.mute[c] = time.Now()
}

// hangUp closes the connections on which nobody waits for anything. Unless all are to go,
// those that have just come have some time to say what they want, and of HTTP/2 those go
// whose clients are known to send no more.
func (f *front) hangUp(all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = f.ended || all
	for c, since := range f.mute {
		h2 := f.both[c]
		if h2 != nil && h2.Busy() {
			continue
		}
		if all || h2 != nil && h2.Parted(partingRest) || h2 == nil && time.Since(since) >= lastWords {
			_ = c.Close() // whatever it says, it is over
		}
	}
}

// farewell asks all clients of HTTP/2 to say when they know that they are to leave.
func (f *front) farewell() {
	f.leaving.Store(true)
	f.mu.Lock()
	list := slices.Collect(maps.Values(f.both))
	f.mu.Unlock()
	for _, h2 := range list {
		h2.Farewell()
	}
}

// close ends serving at once.
func (f *front) close() {
	if f.hs == nil {
		return
	}
	_ = f.hs.Close() // the listener's error is of no use any more
	<-f.served
	f.hijacks.Close()
}

// How long clients have to say what they were just about to: since they connected, or since
// they were told to leave; and where they say that they know so, after they did.
const (
	lastWords   = 250 * time.Millisecond
	partingRest = 20 * time.Millisecond
	shortRound  = 5 * time.Millisecond
)

// finish takes no new connections, tells clients to leave, and waits until what is
// under way is done. Each round gives clients that have just connected, or just sent
// something, the time to say so.
func (f *front) finish(ctx context.Context) error {
	f.farewell()
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
			return f.hijacks.Wait(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// drain ends serving without breaking anybody's request: readyz turns red, the
// server goes on for the delay that load balancers need, then watches end, no new
// connections are taken and what is under way finishes.
func (s *Server) drain(f *front) error {
	s.cfg.Log.Info("draining")
	s.Health.Drain()
	if s.cfg.ShutdownDelay > 0 {
		time.Sleep(s.cfg.ShutdownDelay)
	}
	close(s.leaving)
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
		f.hijacks.Close()
	}
	<-f.served
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
