package conns

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// selfTestFor is how long the test at start may take. It takes some milliseconds.
const selfTestFor = 3 * time.Second

// SelfTest sends one answer the direct way over each protocol, and answers to short requests,
// to a client in this process that looks at every byte, and switches to the standard way if an
// answer does not come as it should. So a change in packages net/http and http2 that this package
// does not know costs no client anything.
func (d *Delivery) SelfTest(overHTTP2 bool) {
	if !d.Direct() {
		return
	}
	try := map[string]func(net.Conn) error{"HTTP/1.1": tryHTTP1}
	if overHTTP2 {
		try["HTTP/2"] = tryHTTP2
	}
	if overHTTP2 && d.cfg.Shorts {
		try["HTTP/2, short requests"] = tryShort
	}
	t, err := newTrial(d.cfg.Opener)
	if err != nil {
		d.fallBack(ReasonSelfTest, err)
		return
	}
	for protocol, client := range try {
		if err := t.run(client); err != nil {
			d.fallBack(ReasonSelfTest, fmt.Errorf("over %s: %w", protocol, err))
		}
	}
	t.close()
}

// What the server of the self-test answers, the direct way and the standard way.
const (
	trialDirect   = "/?watch=1"
	trialStandard = "/standard"
	trialShort    = "/short" // beside package http2
)

var trialParts = []string{"some ", "bytes and ", "others"}

const trialWhole = "some bytes and others"

// trial is the server of a self-test, on pipes.
type trial struct {
	server   *http.Server
	hijacker *Hijacker
	config   *tls.Config
	conns    chan net.Conn // to be accepted
	done     chan struct{} // closed by Close
	once     sync.Once
	running  sync.WaitGroup // the server, and its connections

	mu  sync.Mutex
	err error // of the handler
}

// newTrial starts the server. close ends what it has started.
func newTrial(open Opener) (*trial, error) {
	cert, err := trialCertificate()
	if err != nil {
		return nil, err
	}
	t := &trial{
		config: &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true},
		conns:  make(chan net.Conn), done: make(chan struct{}),
	}
	delivery := NewDelivery(DeliveryConfig{Opener: open})
	t.hijacker = NewHijacker(delivery, t.hand)
	t.server = &http.Server{
		TLSConfig: t.config, ConnContext: ConnContext, ConnState: t.track, ErrorLog: log.New(io.Discard, "", 0),
		Handler: t.hijacker.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.answer(delivery, w, r) })),
	}
	if err := ServeHTTP2(t.server, &http2.Server{}, delivery, Short{Is: func(_, path string) bool { return path == trialShort }}); err != nil {
		return nil, err
	}
	t.config.NextProtos = append(t.config.NextProtos, "http/1.1")
	t.running.Go(func() { _ = t.server.Serve(t) }) // it ends with Close
	return t, nil
}

// trialCertificate makes a certificate for a connection within the process.
func trialCertificate() (tls.Certificate, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}, err
}

// answer is the server's handler.
func (t *trial) answer(d *Delivery, w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case trialStandard:
		_, _ = io.WriteString(w, trialWhole) // the client sees what it gets
		return
	case trialShort:
		if _, beside := w.(*shortAnswer); beside {
			_, _ = io.Copy(w, r.Body) // as above
		}
		return
	}
	s, err := openDirectly(d, w, r)
	switch {
	case err != nil:
		t.note(err)
	case s.Outlive():
		t.running.Go(func() { // it ends with its connection
			t.note(answerDirectly(s))
			s.Over()
		})
	default:
		t.note(answerDirectly(s))
	}
}

// note keeps the first error of the handler.
func (t *trial) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

func openDirectly(d *Delivery, w http.ResponseWriter, r *http.Request) (Stream, error) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		return nil, err
	}
	s, err := d.Open(r.Context(), w)
	if err == nil && s == nil {
		err = errors.New("the answer was not taken over")
	}
	return s, err
}

// answerDirectly sends the parts, which may be when the handler has returned.
func answerDirectly(s Stream) (err error) {
	for _, part := range trialParts {
		b := append(make([]byte, Headroom), part...)
		if _, err = s.TryWrite(&b); err == nil {
			err = s.Flush()
		}
		if err != nil {
			break
		}
	}
	s.Close(err == nil)
	return err
}

// run has a client connect, and says what went wrong.
func (t *trial) run(client func(net.Conn) error) error {
	near, far := net.Pipe()
	defer near.Close()
	if err := near.SetDeadline(time.Now().Add(selfTestFor)); err != nil {
		return err
	}
	t.hand(tls.Server(newRecordConn(far, 0), t.config))
	err := client(near)
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(err, t.err)
}

// close ends the server, and waits for that. A direct way that hangs although its
// connection is closed is left behind.
func (t *trial) close() {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = t.server.Close() // the pipes do not fail to close
		t.hijacker.Close()
		t.running.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(selfTestFor):
	}
}

// track counts the connections that the server has goroutines for.
func (t *trial) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		t.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		t.running.Done()
	}
}

// hand lets a connection be accepted.
func (t *trial) hand(c net.Conn) {
	select {
	case t.conns <- c:
	case <-t.done:
		_ = c.Close() // a pipe
	}
}

// Accept implements net.Listener.
func (t *trial) Accept() (net.Conn, error) {
	select {
	case c := <-t.conns:
		return c, nil
	case <-t.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (t *trial) Close() error {
	t.once.Do(func() { close(t.done) })
	return nil
}

// Addr implements net.Listener.
func (t *trial) Addr() net.Addr { return &net.UnixAddr{Name: "self-test", Net: "pipe"} }

// tryHTTP1 asks for both answers, over one connection.
func tryHTTP1(conn net.Conn) error {
	c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}) // it is a pipe
	if err := c.HandshakeContext(context.Background()); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for _, path := range []string{trialDirect, trialStandard} {
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: self-test\r\n\r\n", path); err != nil {
			return err
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		if err == nil {
			err = resp.Body.Close()
		}
		if err != nil {
			return err
		}
		if got := string(body); got != trialWhole || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s was answered with %d %q", path, resp.StatusCode, got)
		}
	}
	return nil
}
