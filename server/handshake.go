package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// handshakes is a listener whose connections have their TLS handshake behind them.
// A handshake needs a deep stack, and a goroutine that serves a watch after it would
// keep that for hours: so each has a goroutine of its own, which ends with it.
type handshakes struct {
	net.Listener
	config *tls.Config
	limit  time.Duration // for one handshake
	failed func(from net.Addr, err error)
	take   func(*tls.Conn) bool // serves a connection itself

	done   chan net.Conn
	broken chan error
	ctx    context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup

	most    int // under way at once
	mu      sync.Mutex
	pending list.List // of net.Conn, the oldest first
}

// Each handshake under way costs some 20 KB and a file descriptor, and anybody can begin
// one. When there are too many, the oldest is given up: those who mean it need a fraction
// of a second.
const (
	handshakeFor  = 10 * time.Second
	handshakeMost = 2048
)

// begun counts a handshake; the function that it returns ends that.
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
		h.pending.Remove(me) // does nothing if it was given up
	}
}

// newHandshakes starts to accept; Close ends what it started.
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
			h.wg.Go(func() { h.shake(c) })
			continue
		}
		select {
		case h.broken <- err: // who accepts asks again, after a pause, if it may get better
		case <-h.ctx.Done():
			return
		}
	}
}

// shake hands a connection on after its handshake.
func (h *handshakes) shake(raw net.Conn) {
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

// hand lets a connection be accepted, for the first time or again.
func (h *handshakes) hand(c net.Conn) {
	select {
	case h.done <- c:
	case <-h.ctx.Done():
		c.Close()
	}
}

// refuse tells a client that does not speak TLS what is wrong.
func refuse(err error) {
	var re tls.RecordHeaderError
	if !errors.As(err, &re) || re.Conn == nil {
		return
	}
	switch string(re.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		_, _ = io.WriteString(re.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n") // it may have gone
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
