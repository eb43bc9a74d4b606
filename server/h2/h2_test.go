package h2_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/wire"
)

// patience bounds how long a test waits for an expected event.
const patience = 2 * time.Minute

// certificate is one for the server of a test, which clients do not check.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// start serves a handler, and returns the address.
func start(t testing.TB, cfg h2.Config) (*h2.Server, string) {
	t.Helper()
	return startOn(t, func(l net.Listener) net.Listener { return l }, cfg)
}

// startStandard serves a handler by package net/http, and returns the address.
func startStandard(t testing.TB, handler http.Handler) string {
	t.Helper()
	std := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2"}}, ErrorLog: log.New(io.Discard, "", 0)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = std.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = std.Close(); <-done })
	return l.Addr().String()
}

// startOn is start with another listener.
func startOn(t testing.TB, on func(net.Listener) net.Listener, cfg h2.Config) (*h2.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := h2.New(cfg)
	config := &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"h2"}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			raw, err := wire.Listener{Listener: on(l)}.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				c := tls.Server(raw, config)
				if err := c.HandshakeContext(t.Context()); err != nil {
					raw.Close()
					return
				}
				s.Serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.Close()
		running.Wait()
	})
	return s, l.Addr().String()
}

// client is Go's of HTTP/2.
func client(t testing.TB) *http.Client {
	tr := &http2.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func request(t testing.TB, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRequests: handlers and clients see the same requests and responses as with package net/http.
func TestRequests(t *testing.T) {
	large := strings.Repeat("0123456789", 100_000)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			body, err := io.ReadAll(r.Body)
			w.Header().Set("X-Seen", fmt.Sprintf("%s %s %s %t %d %v %q %q %v", r.Method, r.RequestURI, r.Proto, r.Host != "", r.ContentLength, err, r.Header["X-Two"], r.Header["Cookie"], r.TLS != nil && r.TLS.HandshakeComplete))
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(body)
		case "/large":
			_, _ = io.WriteString(w, large)
		case "/length":
			w.Header().Set("Content-Length", strconv.Itoa(len(large)))
			_, _ = io.WriteString(w, large)
		case "/flushed":
			for _, part := range []string{"a", "b", "c"} {
				_, _ = io.WriteString(w, part)
				_ = http.NewResponseController(w).Flush()
			}
		case "/trailers":
			w.Header().Set("Trailer", "X-After")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-After", "said")
			w.Header().Set(http.TrailerPrefix+"X-Unannounced", "too")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/early":
			w.Header().Set("Link", "</style>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			_, _ = io.WriteString(w, "late")
		case "/nothing":
		case "/html":
			_, _ = io.WriteString(w, "<html>")
		case "/refuse":
			w.WriteHeader(http.StatusForbidden)
		case "/abort":
			_, _ = io.WriteString(w, "some")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	_, own := start(t, h2.Config{Handler: handler})
	standard := startStandard(t, handler)
	c := client(t)
	seen := func(addr, method, path, body string, header http.Header) string {
		var from io.Reader
		if body != "" {
			from = strings.NewReader(body)
			if header.Get("X-Unknown-Length") != "" {
				from = io.MultiReader(from)
			}
		}
		r := request(t, method, "https://"+addr+path, from)
		for k, v := range header {
			r.Header[k] = v
		}
		resp, err := c.Do(r)
		if err != nil {
			return "failed"
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		resp.Header.Del("Date")
		return fmt.Sprintf("%d %d %v %v %d:%.80q %v", resp.StatusCode, resp.ContentLength, resp.Header, resp.Trailer, len(got), got, err != nil)
	}
	for _, one := range []struct {
		method, path, body string
		header             http.Header
	}{
		{"GET", "/echo?a=b&c=%2F", "", nil},
		{"GET", "/echo", "", http.Header{"X-Two": {"a", "b"}, "Cookie": {"a=1", "b=2"}}},
		{"POST", "/echo", "short", nil},
		{"POST", "/echo", large, nil},
		{"POST", "/echo", "short", http.Header{"X-Unknown-Length": {"1"}}},
		{"PUT", "/echo", large, http.Header{"X-Unknown-Length": {"1"}}},
		{"PUT", "/echo", "expected", http.Header{"Expect": {"100-continue"}}},
		{"DELETE", "/echo", "", nil}, {"OPTIONS", "/echo", "", nil}, {"HEAD", "/echo", "", nil},
		{"GET", "/large", "", nil}, {"GET", "/length", "", nil}, {"HEAD", "/length", "", nil}, {"GET", "/flushed", "", nil},
		{"GET", "/trailers", "", nil}, {"GET", "/none", "", nil}, {"GET", "/early", "", nil}, {"GET", "/nothing", "", nil}, {"GET", "/html", "", nil},
		{"POST", "/refuse", large, nil}, {"GET", "/abort", "", nil},
	} {
		got, want := seen(own, one.method, one.path, one.body, one.header), seen(standard, one.method, one.path, one.body, one.header)
		if got != want {
			t.Errorf("%s %s %.20s:\n got %s\nwant %s", one.method, one.path, one.body, got, want)
		}
	}
}

// raw is a client that reads and writes frames.
type raw struct {
	testing.TB
	*http2.Framer
	conn *tls.Conn
	head bytes.Buffer
	enc  *hpack.Encoder
}

func dial(t testing.TB, addr string, settings ...http2.Setting) *raw {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &raw{TB: t, Framer: http2.NewFramer(conn, conn), conn: conn}
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.enc = hpack.NewEncoder(&c.head)
	_, err = io.WriteString(conn, http2.ClientPreface)
	c.must(err)
	c.must(c.WriteSettings(settings...))
	return c
}

func (c *raw) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// ask sends the headers of a request.
func (c *raw) ask(id uint32, method, path string, last bool, more ...string) {
	c.Helper()
	c.head.Reset()
	all := append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path}, more...)
	for i := 0; i < len(all); i += 2 {
		c.must(c.enc.WriteField(hpack.HeaderField{Name: all[i], Value: all[i+1]}))
	}
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.head.Bytes(), EndStream: last, EndHeaders: true}))
}

// next returns the next frame but settings and updates of windows; nil when the connection has ended.
func (c *raw) next() http2.Frame {
	c.Helper()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return nil
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.must(c.WriteSettingsAck())
			}
		case *http2.WindowUpdateFrame:
		default:
			return f
		}
	}
}

// want skips frames until one satisfies a condition.
func (c *raw) want(what string, is func(http2.Frame) bool) http2.Frame {
	c.Helper()
	for {
		f := c.next()
		if f == nil {
			c.Fatalf("the connection has ended before %s", what)
		}
		if is(f) {
			return f
		}
	}
}

func isReset(id uint32, code http2.ErrCode) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		r, ok := f.(*http2.RSTStreamFrame)
		return ok && r.StreamID == id && r.ErrCode == code
	}
}

func isEnd(id uint32) func(http2.Frame) bool {
	return func(f http2.Frame) bool {
		switch f := f.(type) {
		case *http2.DataFrame:
			return f.StreamID == id && f.StreamEnded()
		case *http2.MetaHeadersFrame:
			return f.StreamID == id && f.StreamEnded()
		}
		return false
	}
}

// TestDetached: an answer goes on without its handler, whatever the client takes, and its end ends
// the request.
func TestDetached(t *testing.T) {
	streams := make(chan wire.Stream, 8)
	contexts := make(chan context.Context, 8)
	s, addr := start(t, h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		stream, ok := wire.Detach(w)
		if !ok {
			t.Error("not detached")
		}
		contexts <- r.Context()
		streams <- stream
	})})
	c := dial(t, addr, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	c.ask(1, "GET", "/", true)
	c.want("headers", func(f http2.Frame) bool { _, ok := f.(*http2.MetaHeadersFrame); return ok })
	ctx, stream := <-contexts, <-streams
	say := func(text string) *[]byte {
		b := append(make([]byte, wire.Headroom), text...)
		return &b
	}
	if blocked, err := stream.TryWrite(say("12345")); blocked || err != nil {
		t.Fatal(blocked, err)
	}
	if blocked, err := stream.TryWrite(say("67890abc")); !blocked || err != nil {
		t.Fatal(blocked, err)
	}
	got := ""
	for len(got) < 10 {
		f := c.want("data", func(f http2.Frame) bool { _, ok := f.(*http2.DataFrame); return ok }).(*http2.DataFrame)
		got += string(f.Data())
	}
	c.must(c.WriteWindowUpdate(1, 100))
	if err := stream.Flush(); err != nil {
		t.Fatal(err)
	}
	for len(got) < 13 {
		f := c.want("data", func(f http2.Frame) bool { _, ok := f.(*http2.DataFrame); return ok }).(*http2.DataFrame)
		got += string(f.Data())
	}
	if got != "1234567890abc" || ctx.Err() != nil {
		t.Errorf("%q %v", got, ctx.Err())
	}
	stream.Close(true)
	c.want("the end", isEnd(1))
	stream.Over()
	if ctx.Err() == nil {
		t.Error("the request has not ended")
	}
	// The client resets one, whose handler learns it.
	c.ask(3, "GET", "/", true)
	ctx, stream = <-contexts, <-streams
	ended := make(chan struct{})
	stream.WhenEnded(ctx, func() { close(ended) })
	c.must(c.WriteRSTStream(3, http2.ErrCodeCancel))
	<-ended
	<-ctx.Done()
	if _, err := stream.TryWrite(say("x")); err == nil {
		t.Error("a reset stream takes bytes")
	}
	stream.Close(true)
	stream.Over()
	// The connection waits for detached streams.
	c.ask(5, "GET", "/", true)
	ctx, stream = <-contexts, <-streams
	c.conn.Close()
	<-ctx.Done()
	if s.Conns() != 1 {
		t.Error("the connection is forgotten before its answer is over")
	}
	stream.Close(false)
	stream.Over()
}
