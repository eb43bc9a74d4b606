package attack

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
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/e2e/harness"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// slowClients send or take nearly nothing, or send without end.
var slowClients = []attack{
	{"body a byte at a time", slowBodies}, {"body without end", endlessBodies}, {"body of another length", wrongLengths},
	{"list that nobody reads", unreadLists}, {"nothing at all", idleConnections}, {"headers without end", endlessHeaders},
	{"places of others", placesOfOthers}, {"gone with a request behind", goneWithMore},
}

// stream sends a body of unknown length as it comes. The answer may come before its end.
func stream(t *testing.T, client *http.Client, s *arena, body io.Reader) (*http.Response, error) {
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
func slowBodies(t *testing.T, s *arena) {
	type outcome struct {
		code int
		err  error
	}
	const each = 8
	got := make(chan outcome)
	for _, two := range []bool{false, true} {
		for range each {
			client := s.ClientOf(t, two)
			go func() {
				resp, err := stream(t, client, s, drip{t.Context().Done()})
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
	s.admin(t, "POST", configMaps, `{"metadata":{"name":"in-between"}}`)
}

// endlessBodies are refused once they are too large.
func endlessBodies(t *testing.T, s *arena) {
	for _, two := range []bool{false, true} {
		resp, err := stream(t, s.ClientOf(t, two), s, io.MultiReader(strings.NewReader(`{"data":{"a":"`), endless{}))
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

// wrongLengths: bodies shorter and longer than announced.
func wrongLengths(t *testing.T, s *arena) {
	const head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + harness.AdminToken + "\r\nContent-Type: application/json\r\n"
	cases := []struct {
		name, text string
		codes      string // of the answers, one after the other
		end        bool   // the client sends no more
		contains   string // the first answer
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
		conn := s.Dial(t, "http/1.1")
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
			if len(codes) == 0 && !strings.Contains(string(body), c.contains) {
				t.Errorf("%s: %s, want %q in it", c.name, body, c.contains)
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

// lengthOverHTTP2: a stream that ends before its announced length.
func lengthOverHTTP2(t *testing.T, s *arena) {
	t.Helper()
	f := s.DialFrames(t)
	if err := errors.Join(f.Request(false, "POST", configMaps, "authorization", "Bearer "+harness.AdminToken, "content-type", "application/json", "content-length", "500"),
		f.WriteData(1, true, []byte("{}"))); err != nil {
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
func unreadLists(t *testing.T, s *arena) {
	const lists = 30
	conns := make([]*tls.Conn, lists)
	for i := range conns {
		conns[i] = s.Dial(t, "http/1.1")
		if _, err := io.WriteString(conns[i], "GET /api/v1/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+harness.AdminToken+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	// Others are served at the same time.
	s.Get(t, configMaps+"?limit=1")
	// The deadline, and the time for last words, pass; what buffers hold is less than the list.
	for end := time.Now().Add(patience); slices.ContainsFunc(conns, func(c *tls.Conn) bool { return isOpen(t, s, c) }); time.Sleep(50 * time.Millisecond) {
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

// isOpen reports whether the server's end of a connection is still open: the kernel knows,
// and reading would make room for more of the answer.
func isOpen(t *testing.T, s *arena, c *tls.Conn) bool {
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
func idleConnections(t *testing.T, s *arena) {
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
		c := s.Dial(t, []string{"http/1.1", "h2"}[i%2])
		defer c.Close()
		if i%4 == 0 { // half of a request
			if _, err := io.WriteString(c, "GET /api HTTP/1.1\r\nHost"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.Get(t, "/api/v1/namespaces/default")
}

// endlessHeaders: the server ends a connection that never comes to the request.
func endlessHeaders(t *testing.T, s *arena) {
	one := s.Dial(t, "http/1.1")
	_, err := io.WriteString(one, "GET /api HTTP/1.1\r\nHost: x\r\n")
	for i := 0; err == nil && i < 1<<20; i++ {
		_, err = fmt.Fprintf(one, "X-%d: %s\r\n", i, strings.Repeat("a", 1000))
	}
	if err == nil {
		t.Error("a gigabyte of headers was taken")
	}
	two := s.DialFrames(t)
	go func() { _, _ = io.Copy(io.Discard, two.Conn) }() // ends with the connection
	err = two.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, BlockFragment: two.Block(":method", "GET", ":scheme", "https", ":authority", "x", ":path", "/api")})
	for i := 0; err == nil && i < 100_000; i++ {
		err = two.WriteContinuation(1, false, two.Block(fmt.Sprintf("x-%d", i), strings.Repeat("a", 10_000)))
	}
	if err == nil {
		t.Error("a gigabyte of headers was taken over HTTP/2")
	}
}

// placesOfOthers: a user whose few connections have closed windows, or send
// bodies a byte at a time, takes no places from other users.
func placesOfOthers(t *testing.T, s *arena) {
	const mine = "/api/v1/namespaces/mallory/configmaps"
	for i := range 4 {
		s.admin(t, "POST", mine, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 200<<10)))
	}
	s.admin(t, "POST", "/api/v1/namespaces", `{"metadata":{"name":"bob"}}`)
	bob := s.account(t, "bob", "bob")
	s.grant(t, "bob", "bob", `[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list","create"]}]`)
	mallory := []string{"authorization", "Bearer " + s.mallory}
	// Until one has been refused because so many wait.
	for round := 0; slowRefusals(t, s) == 0; round++ {
		if round == 100 {
			t.Fatal("nothing waits")
		}
		c := s.DialFrames(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		for range 20 {
			if err := c.Request(true, "GET", mine, mallory...); err != nil {
				t.Fatal(err)
			}
		}
		c = s.DialFrames(t)
		for range 20 {
			id := c.Next
			if err := c.Request(false, "POST", mine, append(mallory, "content-type", "application/json", "content-length", "1000")...); err != nil {
				t.Fatal(err)
			}
			if err := c.WriteData(id, false, []byte("{")); err != nil {
				t.Fatal(err)
			}
		}
	}
	const his = "/api/v1/namespaces/bob/configmaps"
	for i := range 50 {
		if code, answer := s.send(t, call{method: "GET", path: his, token: bob}); code != 200 {
			t.Errorf("bob's list %d: %d %s", i, code, answer)
		}
		if code, answer := s.send(t, call{method: "POST", path: his, token: bob, body: fmt.Sprintf(`{"metadata":{"name":"bob-%d"}}`, i)}); code != 201 {
			t.Errorf("bob's ConfigMap %d: %d %s", i, code, answer)
		}
	}
}

// slowRefusals returns how many requests were refused because their user had too many that wait.
func slowRefusals(t *testing.T, s *arena) (n float64) {
	t.Helper()
	for line := range strings.Lines(s.Get(t, "/metrics")) {
		if text, ok := strings.CutPrefix(line, `rowlock_requests_limited_total{limit="slow-requests-of-user"} `); ok {
			if _, err := fmt.Sscan(text, &n); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// goneWithMore: clients that disconnect from watches after they have sent the beginning of another request. What served them ends
// with them, which during counts.
func goneWithMore(t *testing.T, s *arena) {
	const watches = 60
	for i := range watches {
		c := s.Dial(t, "http/1.1")
		head := []string{"HTTP/1.1\r\nConnection: close", "HTTP/1.0", "HTTP/1.1"}[i%3]
		path := mine + "?watch=1"
		if i%6 >= 3 {
			path += "&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
		}
		if _, err := io.WriteString(c, "GET "+path+" "+head+"\r\nHost: x\r\nAuthorization: Bearer "+s.mallory+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		if _, err := io.WriteString(c, "GET "); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}
