package server

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// listenFirst listens with the certificate of a donor, for handshakes that take no
// longer than limit, and counts those that fail.
func listenFirst(t *testing.T, donor *httptest.Server, limit time.Duration, failures *atomic.Int32) (l net.Listener, addr string) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{Certificates: donor.TLS.Certificates, NextProtos: []string{"http/1.1"}}
	return newHandshakes(inner, cfg, limit, func(net.Addr, error) { failures.Add(1) }, func(*tls.Conn) bool { return false }), inner.Addr().String()
}

// TestSilentHandshakesEnd: the server disconnects silent clients.
func TestSilentHandshakesEnd(t *testing.T) {
	donor := httptest.NewUnstartedServer(nil)
	donor.StartTLS()
	defer donor.Close()
	var failures atomic.Int32
	l, addr := listenFirst(t, donor, 20*time.Millisecond, &failures)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	silent, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := bufio.NewReader(silent).ReadByte(); err == nil {
		t.Error("a connection without a handshake is kept")
	}
	l.Close()
	if err := <-accepted; err == nil || failures.Load() != 1 {
		t.Errorf("%v after %d failures", err, failures.Load())
	}
}

func TestHandshakesComeFirst(t *testing.T) {
	donor := httptest.NewUnstartedServer(nil)
	donor.StartTLS()
	defer donor.Close()
	var failures atomic.Int32
	l, addr := listenFirst(t, donor, time.Minute, &failures)
	hs := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS != nil && r.TLS.HandshakeComplete)
	})}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(l) }()

	silent, err := net.Dial("tcp", addr) // it does not keep others waiting
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	resp, err := donor.Client().Get("https://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "true" {
		t.Errorf("the handler sees %q", body)
	}
	plain, err := http.Get("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	body, _ = io.ReadAll(plain.Body)
	plain.Body.Close()
	if plain.StatusCode != 400 || !strings.Contains(string(body), "HTTPS server") {
		t.Errorf("plain HTTP: %d %q", plain.StatusCode, body)
	}
	late, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	hs.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if n := failures.Load(); n < 2 { // the third may not have been taken yet
		t.Errorf("%d handshakes failed", n)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("a closed listener accepts")
	}
}

// TestHandshakesAreCounted: of too many under way the oldest is given up.
func TestHandshakesAreCounted(t *testing.T) {
	h := &handshakes{most: 2}
	var clients []net.Conn
	var ends []func()
	for range 4 {
		ours, theirs := net.Pipe()
		clients = append(clients, theirs)
		ends = append(ends, h.begun(ours))
		defer ours.Close()
	}
	for i, c := range clients {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) != (i < 2) {
			t.Errorf("handshake %d: %v", i, err)
		}
	}
	for _, end := range ends {
		end()
	}
	if n := h.pending.Len(); n != 0 {
		t.Errorf("%d are left", n)
	}
}
