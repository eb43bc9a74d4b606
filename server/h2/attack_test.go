package h2_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/h2"
)

// TestBlockWithAPause: a client may take its time between two parts of its headers. They are
// served, and other connections do not notice.
func TestBlockWithAPause(t *testing.T) {
	s, addr := start(t, h2.Config{Clock: 10 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Early")+r.Header.Get("Late"))
	})})
	block := func(fields ...string) []byte {
		var out bytes.Buffer
		enc := hpack.NewEncoder(&out)
		for i := 0; i < len(fields); i += 2 {
			_ = enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true}) // a buffer takes everything
		}
		return out.Bytes()
	}
	var slow []*raw
	for range 8 {
		c := dial(t, addr)
		c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true,
			BlockFragment: block(":method", "GET", ":scheme", "https", ":authority", "x", ":path", "/", "early", "e")}))
		slow = append(slow, c)
	}
	idle := dial(t, addr) // when it is parked the others have waited as long
	parked(t, 1, 8)
	idle.ask(1, "GET", "/", true)
	idle.want("an answer", isEnd(1))
	for range 8 {
		c := dial(t, addr)
		c.ask(1, "GET", "/", true)
		c.want("an answer", isEnd(1))
	}
	for _, c := range slow {
		c.must(c.WriteContinuation(1, true, block("late", "l")))
		f := c.want("data", func(f http2.Frame) bool { _, ok := f.(*http2.DataFrame); return ok }).(*http2.DataFrame)
		if got := string(f.Data()); got != "el" {
			t.Errorf("headers are lost: %q", got)
		}
	}
	s.Close()
}

// parked waits until so many connections are parked, and so many others are read.
func parked(t *testing.T, parks, reads int) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		text := string(stacks[:runtime.Stack(stacks, true)])
		if strings.Count(text, "h2.(*conn).park(") >= parks && strings.Count(text, "h2.(*conn).serve(") <= reads {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not parked: %s", text)
		}
	}
}

// TestCookieCrumbs: a cookie in thousands of pieces costs no more than its bytes.
func TestCookieCrumbs(t *testing.T) {
	const crumbs = 10_000
	var got atomic.Int64
	_, addr := start(t, h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(int64(len(r.Header.Get("Cookie"))))
	})})
	c := dial(t, addr)
	var fields []string
	value := strings.Repeat("c", 60)
	for range crumbs {
		fields = append(fields, "cookie", value)
	}
	c.ask(1, "GET", "/", true)
	c.want("an answer", isEnd(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.ask(3, "GET", "/", true, fields...)
	c.want("an answer", isEnd(3))
	runtime.ReadMemStats(&after)
	if n := got.Load(); n != crumbs*62-2 {
		t.Errorf("%d bytes of cookies", n)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
		t.Errorf("%d MB were allocated for a cookie of %d KB", n>>20, crumbs*62>>10)
	}
}

// hooked is a listener whose connections call hook when they are asked for their client.
type hooked struct {
	net.Listener
	hook *atomic.Pointer[func()]
}

func (l hooked) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return hookedConn{c, l.hook}, err
}

type hookedConn struct {
	net.Conn
	hook *atomic.Pointer[func()]
}

func (c hookedConn) RemoteAddr() net.Addr {
	if f := c.hook.Swap(nil); f != nil {
		(*f)()
	}
	return c.Conn.RemoteAddr()
}

// TestGoneWhileItComes: a request of which the client is told, while the server still reads it,
// that it is not served, is not served: the client sends it again to another server.
func TestGoneWhileItComes(t *testing.T) {
	var served atomic.Int32
	var hook atomic.Pointer[func()]
	s, addr := startOn(t, func(l net.Listener) net.Listener { return hooked{l, &hook} }, h2.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		served.Add(1)
	})})
	c := dial(t, addr)
	drained, told := make(chan error, 1), make(chan struct{})
	f := func() {
		go func() { drained <- s.Drain(context.Background()) }()
		<-told
	}
	hook.Store(&f)
	c.ask(1, "POST", "/", true)
	g := c.want("told to go", func(f http2.Frame) bool {
		g, ok := f.(*http2.GoAwayFrame)
		return ok && g.LastStreamID < 1<<30
	}).(*http2.GoAwayFrame)
	close(told)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if n := served.Load(); g.LastStreamID != 0 || n != 0 {
		t.Errorf("told that up to %d are served, and %d were", g.LastStreamID, n)
	}
}

// TestBlockOf4GB: fields that are a byte each on the wire do not become few when they are many.
func TestBlockOf4GB(t *testing.T) {
	const limit, entry = 1<<20 + 320, 4096
	_, addr := start(t, h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "served")
	})})
	c := dial(t, addr)
	c.ask(1, "GET", "/", true, "a", strings.Repeat("a", entry-32-1))
	c.want("an answer", isEnd(1))
	c.head.Reset()
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/"}} {
		c.must(c.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: f[0] == ":authority"}))
	}
	all := append(bytes.Clone(c.head.Bytes()), bytes.Repeat([]byte{0xbe}, 1<<32/entry)...)
	if len(all) > limit {
		t.Fatal(len(all))
	}
	for first := true; len(all) > 0; first = false {
		part := all[:min(len(all), 16<<10)]
		all = all[len(part):]
		if first {
			c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: part, EndStream: true}))
		} else {
			c.must(c.WriteContinuation(3, len(all) == 0, part))
		}
	}
	f := c.want("headers", func(f http2.Frame) bool { _, ok := f.(*http2.MetaHeadersFrame); return ok }).(*http2.MetaHeadersFrame)
	if got := f.PseudoValue("status"); got != "431" {
		t.Error(got)
	}
}

// TestAuthorityTwice: a pseudo header that comes twice is malformed, even if it says nothing first.
func TestAuthorityTwice(t *testing.T) {
	_, addr := start(t, h2.Config{Handler: http.NotFoundHandler()})
	c := dial(t, addr)
	c.head.Reset()
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {":authority", ""}, {":authority", "x"}} {
		c.must(c.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.head.Bytes(), EndStream: true, EndHeaders: true}))
	f := c.want("a refusal", func(f http2.Frame) bool { return f.Header().StreamID == 1 })
	if !isReset(1, http2.ErrCodeProtocol)(f) {
		t.Errorf("not refused: %v", f)
	}
}

// TestCloseWaitsForParked: Close waits for connections that are parked.
func TestCloseWaitsForParked(t *testing.T) {
	s, addr := start(t, h2.Config{Clock: 10 * time.Millisecond, Handler: http.NotFoundHandler()})
	for range 20 {
		dial(t, addr)
	}
	parked(t, 20, 0)
	s.Close()
	if n := s.Conns(); n > 0 {
		t.Error(fmt.Sprint(n, " connections outlive Close"))
	}
}
