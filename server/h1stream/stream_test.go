package h1stream_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/server/h1stream"
	"github.com/rowlock/rowlock/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// again is a listener that takes connections back.
type again struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (a *again) accept() {
	for {
		c, err := a.Listener.Accept()
		if err != nil {
			return
		}
		a.hand(c)
	}
}

func (a *again) hand(c net.Conn) {
	select {
	case a.conns <- c:
	case <-a.closed:
		c.Close()
	}
}

func (a *again) Accept() (net.Conn, error) {
	select {
	case c := <-a.conns:
		return c, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

func (a *again) Close() error {
	a.once.Do(func() { close(a.closed) })
	return a.Listener.Close()
}

// site serves h over TLS and gives a client of one connection.
func site(t *testing.T, h http.HandlerFunc) (*http.Client, string) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	donor := httptest.NewUnstartedServer(nil)
	donor.StartTLS()
	config := &tls.Config{Certificates: donor.TLS.Certificates, DynamicRecordSizingDisabled: true}
	donor.Close()
	l := &again{Listener: tls.NewListener(wire.Listener{Listener: plain}, config), conns: make(chan net.Conn), closed: make(chan struct{})}
	hijacker := h1stream.New(l.hand)
	hs := &http.Server{ConnContext: hijacker.ConnContext, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "watch=1" { // the caller of BeginWatch knows that the request is a watch
			var returned func()
			w, r, returned = wire.From(r.Context()).(wire.WatchConn).BeginWatch(w, r)
			defer returned()
		}
		h(w, r)
	})}
	var running sync.WaitGroup
	running.Go(l.accept)
	running.Go(func() { _ = hs.Serve(l) })
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		hs.Close()
		hijacker.Close()
		running.Wait()
	})
	return &http.Client{Transport: transport}, "https://" + plain.Addr().String()
}

// detach begins an answer and detaches it.
func detach(t *testing.T, w http.ResponseWriter) wire.Stream {
	_ = http.NewResponseController(w).Flush()
	s, ok := wire.Detach(w)
	if !ok {
		t.Error("the answer is not detached")
	}
	return s
}

// asks sends a request and reports whether its connection had served others.
func asks(t *testing.T, client *http.Client, url string) (resp *http.Response, reused bool) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err = client.Do(req); err != nil {
		t.Fatal(err)
	}
	return resp, reused
}

func say(text string) *[]byte {
	b := append(make([]byte, wire.Headroom), text...)
	return &b
}

// TestStream sends more than a client takes, without waiting and without a handler, and then sees
// that nothing is missing and that the connection serves on.
func TestStream(t *testing.T) {
	const size, most = 100_000, 1000
	streams, returned := make(chan wire.Stream, 1), make(chan bool, 1)
	client, url := site(t, func(w http.ResponseWriter, r *http.Request) {
		streams <- detach(t, w)
		returned <- true
	})
	for round := range 3 {
		resp, reused := asks(t, client, url+"?watch=1")
		s := <-streams
		<-returned
		if s == nil {
			return
		}
		var want []byte
		n := 0
		for stuck := false; !stuck && n < most; n++ {
			b := append(make([]byte, wire.Headroom, wire.Headroom+size), bytes.Repeat([]byte{byte(n)}, size)...)
			want = append(want, b[wire.Headroom:]...)
			var err error
			if stuck, err = s.TryWrite(&b); err != nil {
				t.Fatal(err)
			}
		}
		if n == most {
			t.Fatal("never stuck")
		}
		go func() {
			if err := s.Flush(); err != nil {
				t.Error(err)
			}
			if err := s.Write(say("end")); err != nil {
				t.Error(err)
			}
			s.Close(true)
			s.Over()
		}()
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, append(want, "end"...)) {
			t.Errorf("%d bytes for %d: %v", len(got), len(want)+3, err)
		}
		resp.Body.Close()
		if reused != (round > 0) {
			t.Errorf("round %d: reused %v", round, reused)
		}
	}
}

// TestClientGoes: the end of the client ends the request, whose handler has returned.
func TestClientGoes(t *testing.T) {
	ended := make(chan error, 1)
	client, url := site(t, func(w http.ResponseWriter, r *http.Request) {
		s := detach(t, w)
		ctx := r.Context()
		s.WhenEnded(ctx, func() {
			ended <- ctx.Err()
			s.Close(false)
			s.Over()
		})
		if err := s.Write(say("go")); err != nil {
			t.Error(err)
		}
	})
	resp, _ := asks(t, client, url+"?watch=1")
	if _, err := io.ReadFull(resp.Body, make([]byte, 2)); err != nil {
		t.Error(err)
	}
	resp.Body.Close()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

// TestStreamBreaks: an answer that is not whole, or whose handler panics, does not look as if it
// were, and its connection serves nothing else.
func TestStreamBreaks(t *testing.T) {
	client, url := site(t, func(w http.ResponseWriter, r *http.Request) {
		s := detach(t, w)
		defer s.Over()
		defer s.Close(false)
		if err := s.Write(say("half")); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/panic" {
			panic(http.ErrAbortHandler)
		}
	})
	for _, path := range []string{"/", "/panic"} {
		resp, reused := asks(t, client, url+path+"?watch=1")
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != "half" || err == nil || reused {
			t.Errorf("%s: %q, %v, reused %v", path, got, err, reused)
		}
	}
}

// TestStaying: a response that is not a watch is not detached; a handler may answer a watch itself, or panic,
// like any other.
func TestStaying(t *testing.T) {
	client, url := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/list" {
			if _, ok := wire.Detach(w); ok {
				t.Errorf("%s is detached", r.URL)
			}
		}
		_, _ = io.WriteString(w, "stays")
	})
	for _, path := range []string{"/list?watched=1", "/any?watch=0", "/watch/it"} {
		resp, _ := asks(t, client, url+path)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != "stays" || err != nil {
			t.Errorf("%s: %q %v", path, got, err)
		}
	}
	if resp, err := client.Get(url + "/panic?watch=1"); err == nil {
		resp.Body.Close()
		t.Error("a panic is answered")
	}
}

// TestBulk: whatever its size, an answer of package net/http arrives as it was sent, and what a
// handler flushes does not wait for more.
func TestBulk(t *testing.T) {
	var size atomic.Int64
	flushed := make(chan bool)
	client, url := site(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/flushed" {
			for range flushed {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(size.Load()))
		conn := wire.From(r.Context())
		conn.Cork()
		defer conn.Uncork()
		defer http.NewResponseController(w).Flush()
		body := bytes.Repeat([]byte("y"), int(size.Load()))
		for len(body) > 0 {
			n, _ := w.Write(body[:min(len(body), 130_000)])
			body = body[n:]
		}
	})
	for _, n := range []int{0, 1, 5_000, 16_383, 16_384, 65_536, 490_000} {
		size.Store(int64(n))
		resp, _ := asks(t, client, url)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || len(got) != n {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/flushed", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { flushed <- true }()
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		flushed <- true
	}
	close(flushed)
	if got, err := io.ReadAll(resp.Body); string(got) != "x" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	resp.Body.Close()
}

// TestEarlyFlood: a client that sends and sends while it has a watch loses its connection.
func TestEarlyFlood(t *testing.T) {
	ended := make(chan struct{})
	_, url := site(t, func(w http.ResponseWriter, r *http.Request) {
		s := detach(t, w)
		ctx := r.Context()
		s.WhenEnded(ctx, func() {
			s.Close(false)
			s.Over()
			close(ended)
		})
	})
	c, err := tls.Dial("tcp", url[len("https://"):], &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil { // the answer has begun
		t.Fatal(err)
	}
	for sent, part := 0, make([]byte, 16<<10); sent < 1<<20; sent += len(part) {
		if _, err := c.Write(part); err != nil {
			break
		}
	}
	_ = c.NetConn().SetReadDeadline(time.Now().Add(2 * time.Minute)) // if it fails, so does the read
	if n, err := io.Copy(io.Discard, c); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, then %v", n, err)
	}
	<-ended
}
