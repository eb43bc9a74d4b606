package conns_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/conns"
)

// peer is a client of HTTP/2 that looks after its windows: what exceeds one is an error.
type peer struct {
	t       *testing.T
	conn    *tls.Conn
	framer  *http2.Framer
	write   sync.Mutex
	initial int64
	leaves  bool // it may be told to go away
	deaf    bool // it reads nothing, and holds mu

	mu      sync.Mutex
	changed *sync.Cond
	window  int64 // of the connection
	back    int   // bytes of the connection's window for bodies that were given, or given back
	acks    int   // of its settings
	pongs   int
	block   []byte // the last headers, as they came
	told    bool   // to go away
	streams map[uint32]*peerStream
	next    uint32
	err     error
	stays   bool // also when it is told to go away
}

type peerStream struct {
	window int64
	body   []byte
	ended  bool
	reset  *http2.ErrCode
	back   int // bytes of the window for its body that were given back
}

// newPeer connects; grow is added to the connection's window.
func newPeer(t *testing.T, url string, initial uint32, grow uint32) *peer {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, conn: conn, framer: http2.NewFramer(conn, conn), initial: int64(initial), window: 65535, streams: map[uint32]*peerStream{}, next: 1}
	p.changed = sync.NewCond(&p.mu)
	t.Cleanup(func() { conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	p.must(err)
	p.must(p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: initial}))
	if grow > 0 {
		p.grow(0, grow)
	}
	go p.read()
	return p
}

func (p *peer) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Error(err)
	}
}

// grow grants more of a window.
func (p *peer) grow(stream, n uint32) {
	p.mu.Lock()
	if s := p.streams[stream]; s != nil {
		s.window += int64(n)
	} else {
		p.window += int64(n)
	}
	p.mu.Unlock()
	p.write.Lock()
	defer p.write.Unlock()
	p.must(p.framer.WriteWindowUpdate(stream, n))
}

func (p *peer) settings(initial uint32) {
	p.mu.Lock()
	for _, s := range p.streams {
		s.window += int64(initial) - p.initial
	}
	p.initial = int64(initial)
	p.mu.Unlock()
	p.write.Lock()
	defer p.write.Unlock()
	p.must(p.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: initial}))
}

func (p *peer) get(path string) uint32 {
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "x"}, {":path", path}} {
		p.must(enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	p.write.Lock()
	defer p.write.Unlock()
	p.mu.Lock()
	id := p.next
	p.next += 2
	p.streams[id] = &peerStream{window: p.initial}
	p.mu.Unlock()
	p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}))
	return id
}

func (p *peer) read() {
	for {
		f, err := p.framer.ReadFrame()
		p.mu.Lock()
		if err == nil {
			err = p.take(f)
		}
		p.err = err
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
		if s, ok := f.(*http2.SettingsFrame); ok && !s.IsAck() {
			p.write.Lock()
			p.must(p.framer.WriteSettingsAck())
			p.write.Unlock()
		}
	}
}

func (p *peer) take(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.DataFrame:
		s := p.streams[f.StreamID]
		if s == nil {
			return fmt.Errorf("data of stream %d, which was not begun", f.StreamID)
		}
		n := int64(f.Length)
		p.window -= n
		s.window -= n
		if p.window < 0 || s.window < 0 && n > 0 {
			return fmt.Errorf("%d bytes too many: %d left of the connection's window, %d of stream %d", n, p.window, s.window, f.StreamID)
		}
		if s.ended || s.reset != nil {
			return fmt.Errorf("stream %d goes on after its end", f.StreamID)
		}
		s.body = append(s.body, f.Data()...)
		s.ended = f.StreamEnded()
	case *http2.HeadersFrame:
		p.block = append(p.block[:0], f.HeaderBlockFragment()...)
		if s := p.streams[f.StreamID]; s != nil {
			s.ended = f.StreamEnded()
		}
	case *http2.PingFrame:
		if f.IsAck() {
			p.pongs++
		}
	case *http2.RSTStreamFrame:
		if s := p.streams[f.StreamID]; s != nil {
			code := f.ErrCode
			s.reset = &code
		}
	case *http2.WindowUpdateFrame:
		if s := p.streams[f.StreamID]; s != nil {
			s.back += int(f.Increment)
		} else if f.StreamID == 0 {
			p.back += int(f.Increment)
		}
	case *http2.SettingsFrame:
		if f.IsAck() {
			p.acks++
		}
	case *http2.GoAwayFrame:
		p.told = true
		if (p.stays || p.leaves) && f.ErrCode == http2.ErrCodeNo {
			return nil
		}
		return fmt.Errorf("told to go away: %s %s", f.ErrCode, f.DebugData())
	}
	return nil
}

// until waits until a stream is as wanted.
func (p *peer) until(id uint32, what string, is func(*peerStream) bool) {
	p.t.Helper()
	late := time.AfterFunc(time.Minute, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err = errors.New("waited too long")
		p.changed.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !is(p.streams[id]) {
		if p.err != nil {
			s := p.streams[id]
			p.t.Fatalf("stream %d: no %s: %v; %d bytes, ended %v, reset %v", id, what, p.err, len(s.body), s.ended, s.reset)
		}
		p.changed.Wait()
	}
}

func has(n int) (string, func(*peerStream) bool) {
	return fmt.Sprintf("%d bytes", n), func(s *peerStream) bool { return len(s.body) >= n }
}

func over() (string, func(*peerStream) bool) {
	return "end", func(s *peerStream) bool { return s.ended }
}

// frames serves "/left/N/SIZE": N pieces of SIZE bytes beside package http2, and
// "/N": N bytes by it.
func frames(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var n, size int
		if m, _ := fmt.Sscanf(r.URL.Path, "/left/%d/%d", &n, &size); m != 2 {
			sized(w, r)
			return
		}
		s := leave(t, w, r)
		if s == nil {
			return
		}
		whole := true
		for i := range n {
			b := append(make([]byte, conns.Headroom), numbered(i, size)...)
			stuck, err := s.TryWrite(&b)
			if err == nil && stuck {
				err = s.Flush()
			}
			if err != nil {
				whole = false
				break
			}
		}
		s.Close(whole)
	}
}

func numbered(i, size int) []byte { return bytes.Repeat([]byte(strconv.Itoa(i)+" "), size)[:size] }

func allNumbered(n, size int) (all []byte) {
	for i := range n {
		all = append(all, numbered(i, size)...)
	}
	return all
}

// TestFramesBeside sends answers beside package http2 and by it, over one connection
// whose windows are opened late, by little, and in any order.
func TestFramesBeside(t *testing.T) {
	_, _, url := site(t, true, frames(t))
	for _, initial := range []uint32{24, 1000, 65535, 4 << 20} {
		p := newPeer(t, url, initial, 2<<20)
		const pieces, size, whole = 20, 3000, 100_000
		ids := map[uint32]int{}
		for range 5 {
			ids[p.get(fmt.Sprintf("/left/%d/%d", pieces, size))] = pieces * size
			ids[p.get("/"+strconv.Itoa(whole))] = whole
		}
		for done := false; !done; {
			done = true
			for id, want := range ids {
				p.mu.Lock()
				s := *p.streams[id]
				p.mu.Unlock()
				if len(s.body) < want {
					done = false
					if s.window < 2000 {
						p.grow(id, 1+rand.Uint32N(3000))
						p.grow(0, 1+rand.Uint32N(2000))
					}
				}
			}
			p.mu.Lock()
			err := p.err
			p.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range ids {
			what, is := over()
			p.until(id, what, is)
			body := p.streams[id].body
			if want == whole && len(body) != whole || want != whole && !bytes.Equal(body, allNumbered(pieces, size)) {
				t.Errorf("initial window %d, stream %d: %d bytes of %d, or others", initial, id, len(body), want)
			}
		}
	}
}

// TestFramesNeverUpdated: a client with a large window, who never says that it has
// taken anything, is sent all that fits, by either way.
func TestFramesNeverUpdated(t *testing.T) {
	_, _, url := site(t, true, frames(t))
	const grown, large = 8 << 20, 1<<31 - 1
	p := newPeer(t, url, large, grown)
	a := p.get("/left/9/200000")
	b := p.get("/1800000")
	c := p.get("/left/9/200000")
	for _, id := range []uint32{a, b, c} {
		what, is := over()
		p.until(id, what, is)
	}
	d := p.get("/left/20/200000") // more than is left
	left := grown + 65535 - 3*1_800_000
	what, is := has(left - left/4)
	p.until(d, what, is)
	p.grow(0, 4_000_000)
	what, is = over()
	p.until(d, what, is)
}

// TestFramesShrink: settings change the windows of streams that are under way.
func TestFramesShrink(t *testing.T) {
	_, _, url := site(t, true, frames(t))
	p := newPeer(t, url, 100_000, 2<<20)
	a := p.get("/left/100/3000")
	what, is := has(100_000)
	p.until(a, what, is)
	p.settings(50_000)
	p.grow(a, 100_000) // half of which was taken away
	what, is = has(150_000)
	p.until(a, what, is)
	p.settings(200_000)
	what, is = over()
	p.until(a, what, is)
	if !bytes.Equal(p.streams[a].body, allNumbered(100, 3000)) {
		t.Error("not what was sent")
	}
}

// TestFramesReset: who resets a stream is sent no more of it; its connection serves on.
func TestFramesReset(t *testing.T) {
	ended := make(chan error, 1)
	_, _, url := site(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/endless" {
			sized(w, r)
			return
		}
		s := leave(t, w, r)
		if s == nil {
			return
		}
		defer s.Close(false)
		for {
			b := append(make([]byte, conns.Headroom), numbered(1, 1000)...)
			if err := s.Write(&b); err != nil {
				ended <- err
				return
			}
		}
	})
	p := newPeer(t, url, 50_000, 2<<20)
	a := p.get("/endless")
	what, is := has(50_000)
	p.until(a, what, is)
	p.write.Lock()
	p.must(p.framer.WriteRSTStream(a, http2.ErrCodeCancel))
	p.write.Unlock()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	b := p.get("/1000")
	what, is = over()
	p.until(b, what, is)
}

// TestFramesBroken: an answer that is not whole is reset, and not ended.
func TestFramesBroken(t *testing.T) {
	_, client, url := site(t, true, func(w http.ResponseWriter, r *http.Request) {
		s := leave(t, w, r)
		if s == nil {
			return
		}
		b := append(make([]byte, conns.Headroom), "half"...)
		if err := s.Write(&b); err != nil {
			t.Error(err)
		}
		s.Close(false)
	})
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("%q looks whole", got)
	}
}

// TestFramesStay: without a large window of the connection, all is left to package http2.
func TestFramesStay(t *testing.T) {
	_, _, url := site(t, true, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		if s, err := conns.TakeOver(r.Context(), w); s != nil || err != nil {
			t.Errorf("the answer is taken over: %v", err)
		}
		_, _ = io.WriteString(w, "stays")
	})
	p := newPeer(t, url, 65535, 0)
	a := p.get("/")
	what, is := over()
	p.until(a, what, is)
	if got := string(p.streams[a].body); got != "stays" {
		t.Errorf("%q", got)
	}
}

// TestFramesTogether: what many streams are offered while they are called together
// goes out with few writes; everybody gets his own.
func TestFramesTogether(t *testing.T) {
	const streams = 90
	var mu sync.Mutex
	all := map[string]conns.Stream{}
	var conn conns.Conn
	there, end := make(chan struct{}, streams), make(chan struct{})
	l, client, url := site(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/first" {
			return
		}
		s := leave(t, w, r)
		if s == nil {
			return
		}
		mu.Lock()
		if all[r.URL.Path] = s; conn == nil {
			conn = conns.FromContext(r.Context())
		} else if conn != conns.FromContext(r.Context()) {
			t.Error("there is more than one connection")
		}
		mu.Unlock()
		there <- struct{}{}
		<-end
		s.Close(true)
	})
	first, err := client.Get(url + "/first") // connects; many who do so at once may have several connections
	if err != nil {
		t.Fatal(err)
	}
	first.Body.Close()
	var wg sync.WaitGroup
	for i := range streams {
		wg.Go(func() {
			path := "/" + strconv.Itoa(i)
			resp, err := client.Get(url + path)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if want := strings.Repeat(path, 3); err != nil || string(got) != want {
				t.Errorf("%s: %q %v", path, got, err)
			}
		})
	}
	for range streams {
		<-there
	}
	for range 3 {
		before := l.writes.Load()
		conn.AddWriter()
		for path, s := range all {
			b := append(make([]byte, conns.Headroom), path...)
			if stuck, err := s.TryWrite(&b); stuck || err != nil {
				t.Error(stuck, err)
			}
		}
		conn.RemoveWriter()
		if took := l.writes.Load() - before; took > 4 {
			t.Errorf("%d streams took %d writes", streams, took)
		}
	}
	close(end)
	wg.Wait()
}

// TestFramedWaits: Wait ends with its time and with Wake, from anywhere and before it.
func TestFramedWaits(t *testing.T) {
	_, client, url := site(t, true, func(w http.ResponseWriter, r *http.Request) {
		s := leave(t, w, r)
		if s == nil {
			return
		}
		defer s.Close(true)
		waits(t, s)
	})
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || len(got) != 0 {
		t.Errorf("%q %v", got, err)
	}
}
