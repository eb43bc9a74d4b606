package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// accepting is a listener that records how long Accept has been failing, for example because the process has
// no file descriptors left. Clients wait silently until some are free; package net/http retries within a
// second.
type accepting struct {
	net.Listener
	log    *slog.Logger
	failed func() // counts

	mu       sync.Mutex
	err      error // the last one, while Accept fails
	since    time.Time
	count    int
	logged   bool
	loggedAt time.Time
}

// acceptLogEvery is the shortest interval between two log lines about the beginning or the end of such a failure.
const acceptLogEvery = time.Minute

// Accept implements net.Listener.
func (a *accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	a.note(err)
	return c, err
}

func (a *accepting) note(err error) {
	if errors.Is(err, net.ErrClosed) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	switch {
	case err != nil:
		a.failed()
		if a.err == nil {
			a.since, a.count, a.logged = now, 0, false
		}
		a.err = err
		a.count++
		if !a.logged && (a.loggedAt.IsZero() || now.Sub(a.loggedAt) >= acceptLogEvery) {
			a.logged, a.loggedAt = true, now
			a.log.Error("connections cannot be accepted: clients wait, and the server tries again", "error", err, "do", advice(err))
		}
	case a.err != nil:
		if a.logged {
			a.log.Warn("connections are accepted again", "failed", a.count, "for", now.Sub(a.since).Round(time.Millisecond), "error", a.err)
		}
		a.err = nil
	}
}

func advice(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files of this process (LimitNOFILE, ulimit -n)"
	case errors.Is(err, syscall.ENFILE):
		return "raise the system's limit of open files (fs.file-max)"
	}
	return "look at the memory and the network of this machine"
}

// acceptError returns why Accept fails.
func (a *accepting) acceptError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		return nil
	}
	return fmt.Errorf("connections have not been accepted for %s: %w", time.Since(a.since).Round(time.Second), a.err)
}

// handshakes is a listener whose connections have completed their TLS handshake. A handshake needs a deep
// stack, and a goroutine that went on to serve a watch would keep that stack for hours. Therefore each
// handshake has a goroutine of its own, which ends with it.
type handshakes struct {
	net.Listener
	config *tls.Config
	limit  time.Duration // for one handshake
	failed func(from net.Addr, err error)
	take   func(*tls.Conn) bool // serves a connection; Accept does not return it

	done   chan net.Conn
	broken chan error
	ctx    context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup

	most    int // under way at once
	mu      sync.Mutex
	pending list.List // of net.Conn, the oldest first
}

// Each handshake in progress costs some 20 KB and a file descriptor, and any client can begin one. When there
// are too many, the server drops the oldest: a legitimate client needs a fraction of a second.
const (
	handshakeFor  = 10 * time.Second
	handshakeMost = 2048
)

// begun counts a handshake; the returned function ends it.
func (h *handshakes) begun(raw net.Conn) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	me := h.pending.PushBack(raw)
	if h.pending.Len() > h.most {
		oldest := h.pending.Remove(h.pending.Front()).(net.Conn)
		_ = oldest.Close() // its handshake fails
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.pending.Remove(me) // does nothing if the handshake was dropped
	}
}

// newHandshakes starts accepting connections; Close stops the goroutines.
func newHandshakes(l net.Listener, config *tls.Config, limit time.Duration, failed func(from net.Addr, err error), take func(*tls.Conn) bool) *handshakes {
	h := &handshakes{Listener: l, config: config, limit: limit, failed: failed, take: take, most: handshakeMost, done: make(chan net.Conn), broken: make(chan error)}
	h.ctx, h.end = context.WithCancel(context.Background())
	h.wg.Go(h.accept)
	return h
}

func (h *handshakes) accept() {
	for {
		c, err := h.Listener.Accept()
		if err == nil {
			h.wg.Go(func() { h.handshake(c) })
			continue
		}
		select {
		case h.broken <- err: // the caller of Accept retries a temporary error after a pause
		case <-h.ctx.Done():
			return
		}
	}
}

// handshake performs the handshake of a connection and passes the connection on.
func (h *handshakes) handshake(raw net.Conn) {
	c := tls.Server(raw, h.config)
	ctx, cancel := context.WithTimeout(h.ctx, h.limit)
	defer cancel()
	end := h.begun(raw)
	err := c.HandshakeContext(ctx)
	end()
	if err != nil {
		h.failed(raw.RemoteAddr(), err)
		refuse(err)
		raw.Close()
		return
	}
	if !h.take(c) {
		h.hand(c)
	}
}

// hand makes Accept return a connection, for the first time or again.
func (h *handshakes) hand(c net.Conn) {
	select {
	case h.done <- c:
	case <-h.ctx.Done():
		c.Close()
	}
}

// refuse answers a client that sends HTTP without TLS with an error.
func refuse(err error) {
	var re tls.RecordHeaderError
	if !errors.As(err, &re) || re.Conn == nil {
		return
	}
	switch string(re.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		_, _ = io.WriteString(re.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n") // the client may have gone
	}
}

// Accept implements net.Listener.
func (h *handshakes) Accept() (net.Conn, error) {
	select {
	case c := <-h.done:
		return c, nil
	case err := <-h.broken:
		return nil, err
	case <-h.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It waits for the goroutines.
func (h *handshakes) Close() error {
	h.end()
	err := h.Listener.Close()
	h.wg.Wait()
	return err
}

// Limits of the certificate chain of a client that is not authenticated yet. Package crypto/tls
// accepts up to 256 KiB of certificates, parses them all, and keeps them as long as the connection: some take ten times
// their bytes.
const (
	maxChain      = 10       // certificates
	maxChainBytes = 16 << 10 // of all of them together
)

// acceptable gives each handshake a configuration that names the certificate authorities accepted at that
// moment. All handshakes share one configuration per version of the authorities.
func acceptable(base *tls.Config, authorities func() *x509.CertPool) func(*tls.ClientHelloInfo) (*tls.Config, error) {
	var last atomic.Pointer[tls.Config]
	return func(*tls.ClientHelloInfo) (*tls.Config, error) {
		pool := authorities()
		if c := last.Load(); c != nil && c.ClientCAs == pool {
			return c, nil
		}
		c := base.Clone()
		c.ClientCAs = pool // only to name the authorities: the authenticators verify the certificates
		last.Store(c)
		return c, nil
	}
}

// shortChain fails a handshake in which the client sends a longer certificate chain than any client needs.
func shortChain(raw [][]byte, _ [][]*x509.Certificate) error {
	size := 0
	for _, c := range raw {
		size += len(c)
	}
	if len(raw) > maxChain || size > maxChainBytes {
		return fmt.Errorf("the client shows %d certificates of %d bytes; at most %d of %d are looked at", len(raw), size, maxChain, maxChainBytes)
	}
	return nil
}
