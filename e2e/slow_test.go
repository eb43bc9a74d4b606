package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestSlowClients has clients that send or take nearly nothing, or send without end.
// Each costs the server a connection for a bounded time; no other client waits for them.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	// The time for a request is what slow clients are given; a busy machine, for the others, needs less.
	s := harness.StartT(t, harness.Options{Args: []string{"--request-timeout=15s", "--max-mutating-requests-inflight=20"}})
	for i := range 24 {
		body := fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 500<<10))
		if a := asAdmin(t, s, "POST", "/api/v1/namespaces/default/configmaps", body); a.code != 201 {
			t.Fatal(a.code, a.body)
		}
	}
	before, memory := goroutines(t, s), resident(t, s)
	t.Run("together", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *harness.Server){
			"body a byte at a time": slowBodies, "body without end": endlessBodies, "body of another length": wrongLengths,
			"list that nobody reads": unreadLists, "nothing at all": idleConnections, "headers without end": endlessHeaders, "pings": pingFlood,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
	})
	if grown := resident(t, s) - memory; grown > 400<<20 {
		t.Errorf("slow clients took %d MB", grown>>20)
	}
	// What served them ends.
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		left := goroutines(t, s)
		if left < before+50 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before:\n%.3000s", left, before, asAdmin(t, s, "GET", "/debug/pprof/goroutine?debug=1", "").body)
		}
	}
	if a := asAdmin(t, s, "GET", "/readyz", ""); a.code != 200 {
		t.Error(a)
	}
}

// goroutines is how many a server has.
func goroutines(t *testing.T, s *harness.Server) (n int) {
	t.Helper()
	a := asAdmin(t, s, "GET", "/debug/pprof/goroutine?debug=1", "")
	if _, err := fmt.Sscanf(a.body, "goroutine profile: total %d", &n); err != nil {
		t.Fatal(err, a)
	}
	return n
}

// dial opens a connection with a protocol.
func dial(t *testing.T, s *harness.Server, protocol string) *tls.Conn {
	t.Helper()
	pool, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	// Little is kept for a client that does not read. Set later, this would make reading slow.
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 64<<10) })
	}}
	raw, err := small.Dial("tcp", strings.TrimPrefix(s.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", NextProtos: []string{protocol}})
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}

// clientOf makes a client for HTTP/1.1 or HTTP/2.
func clientOf(t *testing.T, s *harness.Server, two bool) *http.Client {
	t.Helper()
	pool, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: two}
	if !two {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// post sends a body of unknown length as it comes. The answer may come before its end.
func post(t *testing.T, client *http.Client, s *harness.Server, body io.Reader) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "POST", s.URL+"/api/v1/namespaces/default/configmaps", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	r.Header.Set("Content-Type", "application/json")
	return client.Do(r)
}

// drip gives a byte at a time, without end.
type drip struct{ done <-chan struct{} }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.done:
		return 0, errors.New("the test is over")
	case <-time.After(50 * time.Millisecond):
		p[0] = ' '
		return 1, nil
	}
}

// slowBodies: more requests than may run at once wait for their bodies. They are
// ended at the request's deadline, and leave room for others.
func slowBodies(t *testing.T, s *harness.Server) {
	type outcome struct {
		code int
		err  error
	}
	const each = 8
	got := make(chan outcome)
	for _, two := range []bool{false, true} {
		for range each {
			client := clientOf(t, s, two)
			go func() {
				resp, err := post(t, client, s, drip{t.Context().Done()})
				if err != nil {
					got <- outcome{err: err}
					return
				}
				resp.Body.Close()
				got <- outcome{code: resp.StatusCode}
			}()
		}
	}
	for range 2 * each {
		o := <-got
		// A client that is still sending may miss the answer, not the end.
		if o.err != nil && errors.Is(o.err, context.DeadlineExceeded) || o.err == nil && o.code != 504 {
			t.Errorf("%+v", o)
		}
	}
	if a := asAdmin(t, s, "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"in-between"}}`); a.code != 201 {
		t.Error(a)
	}
}

// endlessBodies are refused once they are too large.
func endlessBodies(t *testing.T, s *harness.Server) {
	for _, two := range []bool{false, true} {
		resp, err := post(t, clientOf(t, s, two), s, io.MultiReader(strings.NewReader(`{"data":{"a":"`), endless{}))
		if err != nil { // the connection is closed on a client that goes on
			if errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("HTTP/2 %v: %d", two, resp.StatusCode)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// wrongLengths: bodies shorter and longer than was said.
func wrongLengths(t *testing.T, s *harness.Server) {
	const head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + harness.AdminToken + "\r\nContent-Type: application/json\r\n"
	cases := []struct {
		name, text string
		codes      string // of the answers, one after the other
		end        bool   // the client sends no more
		says       string // the first answer
	}{
		{"shorter, then nothing", head + "Content-Length: 500\r\n\r\n{}", "504", false, ""},
		{"shorter, then the end", head + "Content-Length: 500\r\n\r\n{}", "500", true, "unexpected EOF"},
		{"longer", head + "Content-Length: 10\r\n\r\n" + `{"metadata":{"name":"x"}}` + "\r\n\r\n", "400 400", false, ""},
		{"a chunk without end", head + "Transfer-Encoding: chunked\r\n\r\nfffff\r\n{", "504", false, ""},
		{"a bad chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}", "500", false, "invalid byte in chunk length"},
		{"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400", false, ""},
		{"a length below zero", head + "Content-Length: -2\r\n\r\n{}", "400", false, ""},
		{"length and chunks", head + "Connection: close\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400", false, ""},
	}
	conns := make([]*tls.Conn, len(cases))
	for i, c := range cases { // some wait for their deadline: all at once
		conn := dial(t, s, "http/1.1")
		conns[i] = conn
		if _, err := io.WriteString(conn, c.text); err != nil {
			t.Fatal(err)
		}
		if c.end {
			if err := conn.CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, c := range cases {
		conn := conns[i]
		var codes []string
		for in := bufio.NewReader(conn); ; {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: the connection stays open", c.name)
				}
				break
			}
			body, err := io.ReadAll(resp.Body)
			if len(codes) == 0 && !strings.Contains(string(body), c.says) {
				t.Errorf("%s: %s, want %q in it", c.name, body, c.says)
			}
			codes = append(codes, fmt.Sprint(resp.StatusCode))
			if err != nil {
				break
			}
		}
		if got := strings.Join(codes, " "); got != c.codes {
			t.Errorf("%s: %s, want %s", c.name, got, c.codes)
		}
		conn.Close()
	}
	lengthOverHTTP2(t, s)
}

// lengthOverHTTP2: a stream that ends before the length that was said.
func lengthOverHTTP2(t *testing.T, s *harness.Server) {
	t.Helper()
	conn := dial(t, s, "h2")
	f := startHTTP2(t, conn)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/api/v1/namespaces/default/configmaps"},
		{"authorization", "Bearer " + harness.AdminToken}, {"content-type", "application/json"}, {"content-length", "500"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}), f.WriteData(1, true, []byte("{}"))); err != nil {
		t.Fatal(err)
	}
	var body []byte
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := frame.(*http2.DataFrame); ok {
			body = append(body, d.Data()...)
		}
		if r, ok := frame.(*http2.RSTStreamFrame); ok && r.ErrCode == http2.ErrCodeProtocol {
			return // which is what RFC 9113, 8.1.1, wants; package net/http answers it
		}
		if frame.Header().StreamID == 1 && frame.Header().Flags.Has(http2.FlagDataEndStream) {
			break
		}
	}
	const want = `"message":"request declared a Content-Length of 500 but only wrote 2 bytes","code":500}`
	if !strings.Contains(string(body), want) {
		t.Errorf("over HTTP/2: %s, want %s in it", body, want)
	}
}

// unreadLists: the server gives up answers that the client does not read.
func unreadLists(t *testing.T, s *harness.Server) {
	const lists = 30
	conns := make([]*tls.Conn, lists)
	for i := range conns {
		conns[i] = dial(t, s, "http/1.1")
		if _, err := io.WriteString(conns[i], "GET /api/v1/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+harness.AdminToken+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	// Others are served meanwhile.
	if a := asAdmin(t, s, "GET", "/api/v1/namespaces/default/configmaps?limit=1", ""); a.code != 200 {
		t.Error(a.code)
	}
	// The deadline, and the time for last words, pass; what buffers hold is less than the list.
	for end := time.Now().Add(patience); slices.ContainsFunc(conns, func(c *tls.Conn) bool { return open(t, s, c) }); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("lists that nobody takes go on")
		}
	}
	for i, c := range conns {
		n, err := io.Copy(io.Discard, c)
		if n > 11<<20 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d: after %d KB of a list that was not read in time: %v", i, n>>10, err)
		}
	}
}

// open reports whether the server's end of a connection is still open: the kernel knows,
// and reading would make room for more of the answer.
func open(t *testing.T, s *harness.Server, c *tls.Conn) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	// Addresses are in hexadecimal, the port last; 01 is an established connection.
	_, port, err := net.SplitHostPort(c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(fmt.Sprintf(`0100007F:%04X 0100007F:%04X 01 `, s.Port, n)).Match(table)
}

// idleConnections: many that never ask, and many that never finish their handshake.
func idleConnections(t *testing.T, s *harness.Server) {
	var hello bytes.Buffer
	hello.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}) // the start of a ClientHello
	for i := range 200 {
		raw, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if i%2 == 0 {
			if _, err := raw.Write(hello.Bytes()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 100 {
		c := dial(t, s, []string{"http/1.1", "h2"}[i%2])
		defer c.Close()
		if i%4 == 0 { // half of a request
			if _, err := io.WriteString(c, "GET /api HTTP/1.1\r\nHost"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a := asAdmin(t, s, "GET", "/api/v1/namespaces/default", ""); a.code != 200 {
		t.Error(a)
	}
}

// endlessHeaders: the server ends a connection that never comes to the request.
func endlessHeaders(t *testing.T, s *harness.Server) {
	one := dial(t, s, "http/1.1")
	_, err := io.WriteString(one, "GET /api HTTP/1.1\r\nHost: x\r\n")
	for i := 0; err == nil && i < 1<<20; i++ {
		_, err = fmt.Fprintf(one, "X-%d: %s\r\n", i, strings.Repeat("a", 1000))
	}
	if err == nil {
		t.Error("a gigabyte of headers was taken")
	}
	two := dial(t, s, "h2")
	go func() { _, _ = io.Copy(io.Discard, two) }() // ends with the connection
	f := startHTTP2(t, two)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	write := func(name, value string) {
		if err := encoder.WriteField(hpack.HeaderField{Name: name, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/api"}} {
		write(h[0], h[1])
	}
	err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true})
	for i := 0; err == nil && i < 100_000; i++ {
		block.Reset()
		write(fmt.Sprintf("x-%d", i), strings.Repeat("a", 10_000))
		err = f.WriteContinuation(1, false, block.Bytes())
	}
	if err == nil {
		t.Error("a gigabyte of headers was taken over HTTP/2")
	}
}

func startHTTP2(t *testing.T, c *tls.Conn) *http2.Framer {
	t.Helper()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// pingFlood: answers that the client does not read do not pile up.
func pingFlood(t *testing.T, s *harness.Server) {
	c := dial(t, s, "h2")
	f := startHTTP2(t, c)
	if err := c.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for i := range 500_000 {
		if err := f.WritePing(false, [8]byte{byte(i)}); err != nil {
			t.Logf("ended after %d pings: %v", i, err)
			return
		}
	}
	t.Log("all pings were taken")
}
