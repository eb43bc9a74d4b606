package h2_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/wire"
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
	parked(t, s, 9, 8)
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

// parked waits until the server has conns connections, and at most readers of them have a goroutine.
func parked(t *testing.T, s *h2.Server, conns, readers int) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		text := string(stacks[:runtime.Stack(stacks, true)])
		if s.Conns() == conns && strings.Count(text, "h2.(*conn).begin(")+strings.Count(text, "h2.(*conn).Resume") <= readers+strings.Count(text, "created by github.com/rowlock/rowlock/server/h2.(*conn).Resume") {
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

// hooked is a listener: the next RemoteAddr of one of its connections calls hook.
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

// TestGoneWhileItComes: if a GOAWAY excludes a request that the server is still reading, the server does
// not serve it: the client retries it on another server.
func TestGoneWhileItComes(t *testing.T) {
	var served atomic.Int32
	var hook atomic.Pointer[func()]
	s, addr := startOn(t, func(l net.Listener) net.Listener { return hooked{l, &hook} }, h2.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		served.Add(1)
	})})
	c := dial(t, addr)
	drained, excluded := make(chan error, 1), make(chan struct{})
	f := func() {
		go func() { drained <- s.Drain(context.Background()) }()
		<-excluded
	}
	hook.Store(&f)
	c.ask(1, "POST", "/", true)
	g := c.want("a GOAWAY with the last stream", func(f http2.Frame) bool {
		g, ok := f.(*http2.GoAwayFrame)
		return ok && g.LastStreamID < 1<<30
	}).(*http2.GoAwayFrame)
	close(excluded)
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if n := served.Load(); g.LastStreamID != 0 || n != 0 {
		t.Errorf("the last stream of the GOAWAY is %d, and %d requests were served", g.LastStreamID, n)
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

// TestAuthorityTwice: a request with a pseudo header twice is malformed, even if the first is empty.
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
	parked(t, s, 20, 0)
	s.Close()
	if n := s.Conns(); n > 0 {
		t.Error(fmt.Sprint(n, " connections outlive Close"))
	}
}

// TestFloodIsReadSlowly: frames that ask for nothing are read at their rate, though the client
// reads what they are answered with.
func TestFloodIsReadSlowly(t *testing.T) {
	for name, frame := range map[string]func(w *http2.Framer) error{
		"pings":      func(w *http2.Framer) error { return w.WritePing(false, [8]byte{}) },
		"bad frames": func(w *http2.Framer) error { return w.WriteWindowUpdate(1, 0) }, // each resets a stream
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := h2.New(h2.Config{Handler: http.NotFoundHandler()})
				defer s.Close()
				p := pipe(t, s, true)
				go func() {
					for range p.frames {
					}
				}()
				p.ask(1, "GET", "/", true)
				var part bytes.Buffer
				w := http2.NewFramer(&part, nil)
				w.AllowIllegalWrites = true
				for range 1000 {
					p.must(frame(w))
				}
				began := time.Now()
				for range 22 {
					_, err := p.conn.Write(part.Bytes())
					p.must(err)
				}
				if took := time.Since(began); took < 400*time.Millisecond {
					t.Errorf("1,000 more than may come at once are read in %v", took)
				}
				p.conn.Close()
			})
		})
	}
}

// TestManyParts: a block in too many parts, which the decoder would process again and again, ends the
// connection.
func TestManyParts(t *testing.T) {
	_, addr := start(t, h2.Config{Handler: http.NotFoundHandler()})
	for name, send := range map[string]func(c *raw){
		"settings": func(c *raw) {
			c.must(c.WriteSettings(slices.Repeat([]http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1}, {ID: http2.SettingInitialWindowSize, Val: 2}}, 51)...))
		},
		"headers": func(c *raw) {
			c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}}))
			for range 1000 {
				if c.WriteContinuation(1, false, []byte{0x84}) != nil {
					break
				}
			}
		},
	} {
		c := dial(t, addr)
		send(c)
		_ = c.WritePing(false, [8]byte{}) // its answer follows the answer to the frames of send
		f := c.want("an answer", func(f http2.Frame) bool {
			return f.Header().Type == http2.FrameGoAway || f.Header().Type == http2.FramePing
		})
		if g, ok := f.(*http2.GoAwayFrame); !ok || g.ErrCode != http2.ErrCodeEnhanceYourCalm {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// TestContinueComesFirst: the server sends no 100 Continue after the header of the
// answer.
func TestContinueComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := h2.New(h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/early" {
				_ = http.NewResponseController(w).Flush()
			}
			_, _ = io.Copy(w, r.Body)
		})})
		defer s.Close()
		p := pipe(t, s, true)
		p.ask(1, "POST", "/", false, "expect", "100-continue")
		p.wants("100 Continue", false, "HEADERS")
		p.ask(3, "POST", "/early", false, "expect", "100-continue")
		p.wants("answered", false, "HEADERS")
		p.must(p.WriteData(3, true, []byte("body")))
		p.wants("behind", false, "DATA")
		p.conn.Close()
	})
}

// panicking is a listener whose connections panic when they are read, once now is true.
type panicking struct {
	net.Listener
	now *atomic.Bool
}

func (l panicking) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return panickingConn{c, l.now}, err
}

type panickingConn struct {
	net.Conn
	now *atomic.Bool
}

func (c panickingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.now.Load() {
		panic("a fault")
	}
	return n, err
}

// TestFaultEndsRequests: a fault of the reader ends its connection, and with it the requests.
func TestFaultEndsRequests(t *testing.T) {
	var fault atomic.Bool
	running, read, ended := make(chan struct{}), make(chan error, 1), make(chan struct{})
	s, addr := startOn(t, func(l net.Listener) net.Listener { return panicking{l, &fault} }, h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(running)
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
		<-r.Context().Done()
		close(ended)
	})})
	c := dial(t, addr)
	c.ask(1, "POST", "/", false)
	<-running
	fault.Store(true)
	c.must(c.WritePing(false, [8]byte{}))
	for _, wait := range []func() bool{
		func() bool {
			select {
			case err := <-read:
				return err != nil
			case <-time.After(patience):
				return false
			}
		},
		func() bool {
			select {
			case <-ended:
				return true
			case <-time.After(patience):
				return false
			}
		},
	} {
		if !wait() {
			t.Fatal("a request goes on, of a connection that has ended")
		}
	}
	s.Close()
}

// busy is a listener on whose connections hook is called before each write.
type busy struct {
	net.Listener
	hook *atomic.Pointer[func()]
}

func (l busy) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return busyConn{c, l.hook}, err
}

type busyConn struct {
	net.Conn
	hook *atomic.Pointer[func()]
}

// SyscallConn implements syscall.Conn.
func (c busyConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	return busyRaw{raw, c.hook}, err
}

type busyRaw struct {
	syscall.RawConn
	hook *atomic.Pointer[func()]
}

func (r busyRaw) Control(f func(uintptr)) error {
	if f := r.hook.Load(); f != nil {
		(*f)()
	}
	return r.RawConn.Control(f)
}

// TestSomebodyElseGoesOn: a goroutine that writes an event to one stream does not endlessly send the events
// that others queue on the same connection at the same time.
func TestSomebodyElseGoesOn(t *testing.T) {
	const all, most = 200, 32
	streams := make(chan wire.Stream, 2)
	var hook atomic.Pointer[func()]
	_, addr := startOn(t, func(l net.Listener) net.Listener { return busy{l, &hook} }, h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		stream, _ := wire.Detach(w)
		streams <- stream
	})})
	c := dial(t, addr)
	c.ask(1, "GET", "/", true)
	c.ask(3, "GET", "/", true)
	one, other := <-streams, <-streams
	say := func(s wire.Stream) {
		b := append(make([]byte, wire.Headroom), "event"...)
		if _, err := s.TryWrite(&b); err != nil {
			t.Error(err)
		}
	}
	var writes, mine atomic.Int32
	f := func() {
		stack := make([]byte, 64<<10)
		if strings.Contains(string(stack[:runtime.Stack(stack, false)]), "TestSomebodyElseGoesOn(") {
			mine.Add(1)
		}
		if writes.Add(1) <= all {
			say(other)
		}
	}
	hook.Store(&f)
	say(one)
	for n := 0; n < all+1; {
		c.want("events", func(f http2.Frame) bool {
			if d, ok := f.(*http2.DataFrame); ok {
				n += len(d.Data()) / len("event")
			}
			return true
		})
	}
	hook.Store(nil)
	if n := mine.Load(); n > most {
		t.Errorf("the writer of one event sends %d times", n)
	}
	for _, s := range []wire.Stream{one, other} {
		s.Close(true)
		s.Over()
	}
}

// TestLongHeadersDoNotWait: the server does not keep a request with long headers until its body arrives: it has not
// authenticated the client yet.
func TestLongHeadersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called atomic.Int32
		s := h2.New(h2.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) })})
		defer s.Close()
		p := pipe(t, s, true)
		p.ask(1, "POST", "/", false, "content-length", "4")
		p.wants("short headers", false)
		p.ask(3, "POST", "/", false, "content-length", "4", "a", strings.Repeat("a", 9<<10))
		p.wants("long headers", false, "HEADERS", "RST NO_ERROR")
		if n := called.Load(); n != 1 {
			t.Errorf("%d handlers were called", n)
		}
		p.conn.Close()
	})
}

// TestHandlerEndsItsGoroutine: nothing waits for such a handler.
func TestHandlerEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := h2.New(h2.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runtime.Goexit() })})
		defer s.Close()
		p := pipe(t, s, true)
		p.ask(1, "GET", "/", true)
		p.wants("asked", false, "RST INTERNAL_ERROR")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
	})
}
