package h2_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStreamsAtOnce: a client that begins too many streams is refused those, whether or not they
// have handlers, and may come again.
func TestStreamsAtOnce(t *testing.T) {
	streams := make(chan wire.Stream, 4)
	_, addr := start(t, h2.Config{MaxStreams: 2, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		s, _ := wire.Detach(w)
		streams <- s
	})})
	c := dial(t, addr)
	for _, id := range []uint32{1, 3, 5} {
		c.ask(id, "GET", "/", true)
	}
	c.want("a refusal", isReset(5, http2.ErrCodeRefusedStream))
	first, second := <-streams, <-streams
	first.Close(true)
	first.Over()
	c.want("an end", func(f http2.Frame) bool { return isEnd(1)(f) || isEnd(3)(f) })
	c.ask(7, "GET", "/", true)
	third := <-streams
	for _, s := range []wire.Stream{second, third} {
		s.Close(true)
		s.Over()
	}
	c.want("an end", isEnd(7))
}

// TestResetsAtOnce: streams that the client resets at once do not pile up handlers.
func TestResetsAtOnce(t *testing.T) {
	var running, most atomic.Int32
	gate := make(chan struct{})
	_, addr := start(t, h2.Config{MaxStreams: 10, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-gate
		running.Add(-1)
	})})
	c := dial(t, addr)
	refused := make(chan bool)
	go func() {
		defer close(refused)
		for {
			f, err := c.ReadFrame()
			if err != nil || isReset(1999, http2.ErrCodeRefusedStream)(f) {
				return
			}
		}
	}()
	for id := uint32(1); id < 2000; id += 2 {
		c.ask(id, "GET", "/", true)
		if id < 1999 {
			c.must(c.WriteRSTStream(id, http2.ErrCodeCancel))
		}
	}
	<-refused
	close(gate)
	if n := most.Load(); n > 20 {
		t.Errorf("%d handlers at once", n)
	}
}

// TestLeaves: an answer may tell the client to go away. What it asks then is ignored, but not
// without end.
func TestLeaves(t *testing.T) {
	var served atomic.Int32
	_, addr := start(t, h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		w.Header().Set("Connection", "close")
	})})
	c := dial(t, addr)
	c.ask(1, "GET", "/", true)
	if f := c.want("GOAWAY", func(f http2.Frame) bool { _, ok := f.(*http2.GoAwayFrame); return ok }).(*http2.GoAwayFrame); f.LastStreamID != 1 || f.ErrCode != http2.ErrCodeNo {
		t.Error(f)
	}
	for id := uint32(3); ; id += 2 {
		c.head.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/"}} {
			c.must(c.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
		}
		if c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.head.Bytes(), EndStream: true, EndHeaders: true}) != nil {
			break
		}
	}
	if n := served.Load(); n != 1 {
		t.Errorf("%d are served", n)
	}
}

// TestHeadersTooLong: headers that are too long are answered with 431, and a block without end
// ends the connection.
func TestHeadersTooLong(t *testing.T) {
	_, addr := start(t, h2.Config{MaxHeader: 10_000, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "served")
	})})
	c := dial(t, addr)
	c.ask(1, "GET", "/", true, "a", strings.Repeat("a", 8000), "b", strings.Repeat("a", 8000))
	f := c.want("headers", func(f http2.Frame) bool { _, ok := f.(*http2.MetaHeadersFrame); return ok }).(*http2.MetaHeadersFrame)
	if got := f.PseudoValue("status"); got != "431" {
		t.Error(got)
	}
	c.ask(3, "GET", "/", true)
	c.want("an answer", isEnd(3))
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: []byte{0x82}}))
	for range 100_000 {
		if c.WriteContinuation(5, false, bytes.Repeat([]byte{0x84}, 1000)) != nil {
			break
		}
	}
	g := c.want("GOAWAY", func(f http2.Frame) bool { _, ok := f.(*http2.GoAwayFrame); return ok }).(*http2.GoAwayFrame)
	if g.ErrCode != http2.ErrCodeEnhanceYourCalm {
		t.Error(g)
	}
}

// TestBodyWindow: a handler that does not read its body has so much of it kept, and no more.
func TestBodyWindow(t *testing.T) {
	const window = 256 << 10
	read := make(chan int)
	_, addr := start(t, h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for n := range read {
			if _, err := io.ReadFull(r.Body, make([]byte, n)); err != nil {
				t.Error(err)
			}
		}
	})})
	c := dial(t, addr)
	c.ask(1, "POST", "/", false)
	part := make([]byte, 16<<10)
	for range window / len(part) {
		c.must(c.WriteData(1, false, part))
	}
	read <- window / 2
	for {
		f, err := c.ReadFrame()
		c.must(err)
		if u, ok := f.(*http2.WindowUpdateFrame); ok && u.StreamID == 1 {
			if u.Increment > window/2 {
				t.Errorf("%d bytes more", u.Increment)
			}
			break
		}
	}
	read <- 1
	for range window / len(part) {
		c.must(c.WriteData(1, false, part))
	}
	c.want("a refusal", isReset(1, http2.ErrCodeFlowControl))
	close(read)
}

// full is a listener whose connections accept nothing without waiting, and block writers.
type full struct{ net.Listener }

func (l full) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fullConn{Conn: c, closed: make(chan struct{})}, nil
}

type fullConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *fullConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// SyscallConn implements syscall.Conn.
func (c *fullConn) SyscallConn() (syscall.RawConn, error) {
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	return fullRaw{raw, c}, err
}

type fullRaw struct {
	syscall.RawConn
	c *fullConn
}

func (fullRaw) Control(func(uintptr)) error { return nil }

func (r fullRaw) Write(func(uintptr) bool) error {
	<-r.c.closed
	return net.ErrClosed
}

// TestUnreadAnswers: a client that takes no answers to its pings and settings is hung up on before
// they pile up.
func TestUnreadAnswers(t *testing.T) {
	const sent, kept = 15_000, 10_000
	for name, send := range map[string]func(c *raw) error{
		"pings":    func(c *raw) error { return c.WritePing(false, [8]byte{}) },
		"settings": func(c *raw) error { return c.WriteSettings() },
	} {
		s, addr := startOn(t, func(l net.Listener) net.Listener { return full{l} }, h2.Config{Handler: http.NotFoundHandler()})
		c := dial(t, addr)
		c.ask(1, "GET", "/", true)
		n := 0
		for ; n < sent && send(c) == nil; n++ {
		}
		if n < kept {
			t.Errorf("%s: hung up on after %d", name, n)
		}
		for end := time.Now().Add(patience); s.Conns() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: the connection stays", name)
			}
		}
	}
}

// TestParks: a connection on which nothing happens has no goroutine, and is served when its client sends something.
func TestParks(t *testing.T) {
	streams := make(chan wire.Stream, 1)
	s, addr := start(t, h2.Config{Clock: 10 * time.Millisecond, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(200)
		if r.URL.Path != "/watch" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		stream, _ := wire.Detach(w)
		streams <- stream
	})})
	c := dial(t, addr)
	c.ask(1, "GET", "/watch", true)
	stream := <-streams
	parked(t, s, 1, 0)
	b := append(make([]byte, wire.Headroom), "said"...)
	if _, err := stream.TryWrite(&b); err != nil {
		t.Fatal(err)
	}
	c.want("data", func(f http2.Frame) bool { d, ok := f.(*http2.DataFrame); return ok && string(d.Data()) == "said" })
	c.ask(3, "GET", "/", true)
	c.want("an answer", isEnd(3))
	parked(t, s, 1, 0)
	ended := make(chan struct{})
	stream.WhenEnded(t.Context(), func() { close(ended) })
	c.must(c.WriteRSTStream(1, http2.ErrCodeCancel))
	<-ended
	stream.Close(true)
	stream.Over()
	parked(t, s, 1, 0)
	c.conn.Close()
	for end := time.Now().Add(patience); s.Conns() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the end of a parked connection is not noticed")
		}
	}
}

// TestTimes: timeouts of clients that do not complete a message, or do not read an answer.
func TestTimes(t *testing.T) {
	timed := func(name string, f func(t *testing.T, s *h2.Server)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := h2.New(h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/wait" {
						<-r.Context().Done()
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_, _ = w.Write(make([]byte, 100))
				})})
				defer s.Close()
				f(t, s)
			})
		})
	}
	timed("a greeting that does not come", func(t *testing.T, s *h2.Server) {
		p := pipe(t, s, false)
		time.Sleep(9 * time.Second)
		p.wants("before", false)
		time.Sleep(2 * time.Second)
		p.wants("behind", true)
	})
	timed("nothing to do", func(t *testing.T, s *h2.Server) {
		p := pipe(t, s, true)
		time.Sleep(179 * time.Second)
		p.wants("before", false)
		time.Sleep(4 * time.Second)
		p.wants("behind", true, "GOAWAY NO_ERROR")
	})
	timed("headers whose end does not come", func(t *testing.T, s *h2.Server) {
		p := pipe(t, s, true)
		p.ask(1, "GET", "/wait", true)
		p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x82}}))
		time.Sleep(29 * time.Second)
		p.wants("before", false)
		time.Sleep(3 * time.Second)
		p.wants("behind", true)
	})
	timed("a request that lasts", func(t *testing.T, s *h2.Server) {
		p := pipe(t, s, true)
		p.ask(1, "GET", "/wait", true)
		time.Sleep(time.Hour)
		p.wants("behind", false)
		p.conn.Close()
	})
	timed("a body that was announced", func(t *testing.T, s *h2.Server) {
		p := pipe(t, s, true)
		p.ask(1, "POST", "/", false, "content-length", "10")
		time.Sleep(29 * time.Second)
		p.wants("before", false)
		time.Sleep(3 * time.Second)
		p.wants("behind", false, "RST CANCEL")
		p.conn.Close()
	})
	timed("an answer that finds no window", func(t *testing.T, s *h2.Server) {
		p := pipe(t, s, true, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		p.ask(1, "GET", "/", true)
		time.Sleep(29 * time.Second)
		p.wants("before", false, "HEADERS", "DATA")
		p.must(p.WriteWindowUpdate(1, 10))
		time.Sleep(29 * time.Second)
		p.wants("after some progress", false, "DATA")
		time.Sleep(2 * time.Second)
		p.wants("behind", false, "RST INTERNAL_ERROR")
		p.conn.Close()
	})
}

// FuzzFrames: whatever a client sends, the server serves on and ends.
func FuzzFrames(f *testing.F) {
	frames := func(write func(*http2.Framer)) []byte {
		var out bytes.Buffer
		write(http2.NewFramer(&out, nil))
		return out.Bytes()
	}
	block := []byte{0x82, 0x87, 0x84, 0x41, 0x01, 'x'}
	f.Add(frames(func(w *http2.Framer) {
		_ = w.WriteSettings()
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block, EndHeaders: true})
		_ = w.WriteData(1, true, []byte("body"))
		_ = w.WriteWindowUpdate(0, 10)
		_ = w.WriteRSTStream(1, http2.ErrCodeCancel)
		_ = w.WritePing(false, [8]byte{})
	}))
	f.Add(frames(func(w *http2.Framer) {
		_ = w.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block[:3]})
		_ = w.WriteContinuation(1, true, block[3:])
		_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndStream: true, EndHeaders: true})
		_ = w.WriteGoAway(0, http2.ErrCodeNo, nil)
	}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := h2.New(h2.Config{MaxStreams: 4, MaxHeader: 4 << 10, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		})})
		defer s.Close()
		p := pipe(t, s, true)
		_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = p.conn.Write(data)
		p.conn.Close()
		for range p.frames {
		}
	})
}

// TestBytesNowAndThen: a client that takes a byte of a watch now and then loses the watch as if it took none.
func TestBytesNowAndThen(t *testing.T) {
	for name, write := range map[string]func(s wire.Stream, b *[]byte) error{
		"Write": wire.Stream.Write,
		"Flush": func(s wire.Stream, b *[]byte) error {
			if blocked, err := s.TryWrite(b); !blocked || err != nil {
				return fmt.Errorf("blocked %t: %w", blocked, err)
			}
			return s.Flush()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			streams := make(chan wire.Stream, 1)
			s := h2.New(h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(200)
				_ = http.NewResponseController(w).Flush()
				stream, _ := wire.Detach(w)
				streams <- stream
			})})
			defer s.Close()
			p := pipe(t, s, true, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100})
			p.ask(1, "GET", "/", true)
			stream := <-streams
			began, failed := time.Now(), make(chan error, 1)
			go func() {
				b := make([]byte, wire.Headroom+1000)
				failed <- write(stream, &b)
			}()
			var err error
			for n := 0; n < 60 && err == nil; n++ {
				p.must(p.WriteWindowUpdate(1, 1))
				select {
				case err = <-failed:
				case <-time.After(10 * time.Second):
				}
			}
			if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || took > 40*time.Second {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			p.conn.Close()
			stream.Close(false)
			stream.Over()
		})
	}
}
