//go:build unix

package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Dial opens a connection with a protocol, "http/1.1" or "h2". The kernel keeps little of what the
// client does not read, and the connection ends with the test.
func (s *Server) Dial(t testing.TB, protocol string) *tls.Conn {
	t.Helper()
	pool, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	// Set later, a small buffer would make reading slow.
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

// Frames is a connection of HTTP/2 whose frames a test writes by itself.
type Frames struct {
	*http2.Framer
	Conn *tls.Conn
	Next uint32 // the stream of the next request

	block bytes.Buffer
	enc   *hpack.Encoder
}

// DialFrames opens one whose client has settings.
func (s *Server) DialFrames(t testing.TB, settings ...http2.Setting) *Frames {
	t.Helper()
	c := s.Dial(t, "h2")
	f := &Frames{Conn: c, Framer: http2.NewFramer(c, c), Next: 1}
	f.AllowIllegalWrites = true
	f.enc = hpack.NewEncoder(&f.block)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return f
}

// Block returns a header block with names and values in turn. It is valid until the next one.
func (f *Frames) Block(fields ...string) []byte {
	f.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		_ = f.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}) // a buffer takes everything
	}
	return f.block.Bytes()
}

// Request begins a request, with names and values of headers in turn. Without end a body follows.
func (f *Frames) Request(end bool, method, path string, headers ...string) error {
	id := f.Next
	f.Next += 2
	fields := append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path}, headers...)
	return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.Block(fields...), EndHeaders: true, EndStream: end})
}

// ClientOf makes a client for HTTP/1.1 or HTTP/2 that adds no credentials.
func (s *Server) ClientOf(t testing.TB, two bool) *http.Client {
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

// Get returns the answer to an administrator's GET of a path.
func (s *Server) Get(t testing.TB, path string) string {
	t.Helper()
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+AdminToken)
	r.Header.Set("Accept", "*/*")
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %.1000s", path, resp.StatusCode, err, body)
	}
	return string(body)
}

// Admin sends a request of an administrator by a client, and returns the body of the answer; the test fails unless the server
// carries it out. A body is JSON, and that of PATCH a merge patch.
func (s *Server) Admin(t testing.TB, client *http.Client, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+AdminToken)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %v %.2000s", method, path, resp.StatusCode, err, answer)
	}
	return string(answer)
}

// Grant gives a subject of RBAC, in JSON, rules in a namespace, or everywhere if that is empty, by a role and a binding with
// a name.
func (s *Server) Grant(t testing.TB, client *http.Client, namespace, name, subject, rules string) {
	t.Helper()
	const group = "rbac.authorization.k8s.io"
	kind, path := "Role", "/apis/"+group+"/v1/namespaces/"+namespace+"/role"
	if namespace == "" {
		kind, path = "ClusterRole", "/apis/"+group+"/v1/clusterrole"
	}
	s.Admin(t, client, http.MethodPost, path+"s", fmt.Sprintf(`{"metadata":{"name":%q},"rules":%s}`, name, rules))
	s.Admin(t, client, http.MethodPost, path+"bindings", fmt.Sprintf(
		`{"metadata":{"name":%q},"roleRef":{"apiGroup":%q,"kind":%q,"name":%q},"subjects":[%s]}`, name, group, kind, name, subject))
}

// Goroutines returns how many goroutines the server has.
func (s *Server) Goroutines(t testing.TB) (n int) {
	t.Helper()
	text := s.Get(t, "/debug/pprof/goroutine?debug=1")
	if _, err := fmt.Sscanf(text, "goroutine profile: total %d", &n); err != nil {
		t.Fatalf("%v: %.100s", err, text)
	}
	return n
}

// GoroutinesEnd waits until the server has fewer goroutines than most.
func (s *Server) GoroutinesEnd(t testing.TB, most int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		left := s.Goroutines(t)
		if left < most {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, want fewer than %d:\n%.3000s", left, most, s.Get(t, "/debug/pprof/goroutine?debug=1"))
		}
	}
}

// Descriptors returns how many files and sockets the server's process has open.
func (s *Server) Descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// ProcessorTime returns how much processor time the server's process has used, in steps of 10 ms.
func (s *Server) ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	// pid (name) state ...; a name may hold anything. The 12th and 13th behind it are of
	// the process itself and of what the system did for it.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// Resident returns how many bytes of memory the server's process has.
func (s *Server) Resident(t testing.TB) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
