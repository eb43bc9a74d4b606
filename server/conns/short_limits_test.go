package conns_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// post sends the headers of a request that is short.
func (p *peer) post(path string, more ...string) uint32 {
	p.t.Helper()
	return p.send(len(more) == 0, append([]string{":method", "POST", ":scheme", "https", ":authority", "x", ":path", path}, more...)...)
}

// send begins a stream.
func (p *peer) send(end bool, fields ...string) uint32 {
	p.t.Helper()
	id, err := p.begin(end, fields...)
	p.must(err)
	return id
}

func (p *peer) begin(end bool, fields ...string) (id uint32, err error) {
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	enc.SetMaxDynamicTableSize(0)
	for i := 0; i < len(fields); i += 2 {
		p.must(enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	p.write.Lock()
	defer p.write.Unlock()
	if !p.deaf {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.streams[p.next] = &peerStream{window: p.initial}
	}
	id = p.next
	p.next += 2
	return id, p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndStream: end, EndHeaders: true})
}

func (p *peer) data(id uint32, end bool, text string) {
	p.write.Lock()
	defer p.write.Unlock()
	p.must(p.framer.WriteData(id, end, []byte(text)))
}

// shortPeer is a peer whose next requests are short.
func shortPeer(t *testing.T, url string, initial uint32) *peer {
	p := newPeer(t, url, initial, 8<<20)
	what, is := over()
	p.until(p.get("/passed"), what, is)
	return p
}

// TestShortWindows: answers keep to windows that are opened late and by little.
func TestShortWindows(t *testing.T) {
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(allNumbered(10, 9000))
	})
	for _, initial := range []uint32{0, 1, 1000, 1 << 20} {
		p := shortPeer(t, url, initial)
		var ids []uint32
		for range 5 {
			ids = append(ids, p.post("/"))
		}
		for sent := initial; sent < 90_000; sent += 7000 {
			for _, id := range ids {
				p.grow(id, 7000)
			}
		}
		for _, id := range ids {
			what, is := over()
			if p.until(id, what, is); !bytes.Equal(p.streams[id].body, allNumbered(10, 9000)) {
				t.Errorf("window %d: the answer is another one", initial)
			}
		}
	}
}

// TestShortBodies: bodies that are not as announced, and requests that are given up.
func TestShortBodies(t *testing.T) {
	ended := make(chan error, 100)
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, string(body), " ", err)
		if r.URL.Path == "/wait" {
			<-r.Context().Done()
			ended <- r.Context().Err()
		}
	})
	p := shortPeer(t, url, 1<<20)
	what, is := over()
	crumbs := p.post("/", "content-length", "4")
	short := p.post("/", "content-length", "4")
	long := p.post("/", "content-length", "4")
	waits := p.post("/wait", "content-length", "1")
	p.data(crumbs, false, "a")
	p.data(short, true, "ab")
	p.data(crumbs, false, "")
	p.data(long, false, "abcdef")
	p.data(waits, true, "x")
	p.data(crumbs, true, "bcd")
	p.until(crumbs, what, is)
	p.until(short, what, is)
	p.until(long, "reset", func(s *peerStream) bool { return s.reset != nil && *s.reset == http2.ErrCodeProtocol })
	if got, want := string(p.streams[crumbs].body), "abcd <nil>"; got != want {
		t.Errorf("a body in crumbs: %q", got)
	}
	if got, want := string(p.streams[short].body), "ab request declared a Content-Length of 4 but only wrote 2 bytes"; got != want {
		t.Errorf("a body that is too short: %q", got)
	}
	p.write.Lock()
	p.must(p.framer.WriteRSTStream(waits, http2.ErrCodeCancel))
	p.must(p.framer.WriteWindowUpdate(waits, 100)) // of a stream that package http2 never heard of
	p.write.Unlock()
	if err := <-ended; err == nil {
		t.Error("a request that its client gave up goes on")
	}
	p.until(p.post("/"), what, is) // the connection lives on
	gone := p.post("/wait")
	p.until(p.post("/"), what, is)
	_ = p.conn.Close()
	if err := <-ended; err == nil {
		t.Errorf("the client of stream %d has gone, and its request goes on", gone)
	}
}

// TestShortFlood: no more handlers run than may, whatever a client begins and gives up.
func TestShortFlood(t *testing.T) {
	var running, most atomic.Int32
	release := make(chan struct{})
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		if isDirect(w) {
			n := running.Add(1)
			defer running.Add(-1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
		}
		<-release
	})
	p := shortPeer(t, url, 1<<20)
	for range 2000 {
		id := p.post("/")
		p.write.Lock()
		err := p.framer.WriteRSTStream(id, http2.ErrCodeCancel)
		p.write.Unlock()
		if err != nil {
			break // the server has had enough
		}
	}
	deadline := time.Now().Add(2 * time.Minute)
	for most.Load() < 32 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	close(release)
	if got := most.Load(); got != 32 {
		t.Errorf("%d handlers ran at once", got)
	}
}

// TestShortProtocol: what HTTP/2 does not allow ends the connection, as by package http2.
func TestShortProtocol(t *testing.T) {
	_, url, _ := shortly(t, everything, func(http.ResponseWriter, *http.Request) {})
	for name, send := range map[string]func(p *peer){
		"compression that is broken": func(p *peer) {
			p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff}, EndStream: true, EndHeaders: true}))
		},
		"an index of no field": func(p *peer) {
			p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0xff, 0x40}, EndStream: true, EndHeaders: true}))
		},
		"a frame within headers": func(p *peer) {
			p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x82}, EndStream: true}))
			p.must(p.framer.WritePing(false, [8]byte{}))
		},
		"headers without end": func(p *peer) {
			p.must(p.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x82}}))
			for p.framer.WriteContinuation(3, false, bytes.Repeat([]byte{0x82}, 16<<10)) == nil { // until the server has had enough
			}
		},
		"continuations of nothing": func(p *peer) { p.must(p.framer.WriteContinuation(3, true, []byte{0x82})) },
		"data of no stream":        func(p *peer) { p.must(p.framer.WriteData(9, true, []byte("x"))) },
		"a reset of a stream that only a server could begin": func(p *peer) {
			what, is := over()
			p.until(p.post("/"), what, is)
			p.must(p.framer.WriteRSTStream(2, http2.ErrCodeCancel))
		},
		"a stream again": func(p *peer) {
			what, is := over()
			id := p.post("/")
			p.until(id, what, is)
			p.mu.Lock()
			p.next = id
			p.mu.Unlock()
			p.post("/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := shortPeer(t, url, 1<<20)
			send(p)
			p.mu.Lock()
			defer p.mu.Unlock()
			for p.err == nil {
				p.changed.Wait()
			}
			if !strings.HasPrefix(p.err.Error(), "told to go away: ") {
				t.Errorf("the client is not told why: %v", p.err)
			}
		})
	}
	t.Run("data behind the end", func(t *testing.T) {
		p := shortPeer(t, url, 1<<20)
		what, is := over()
		id := p.post("/", "content-length", "1")
		p.data(id, true, "x")
		p.until(id, what, is)
		p.data(id, true, "x")
		p.until(id, "reset", func(s *peerStream) bool { return s.reset != nil && *s.reset == http2.ErrCodeStreamClosed })
		p.until(p.post("/"), what, is)
	})
}

// TestShortLeaves: a client that is told to go away has the answers to all that it sent, and
// sends none of it again.
func TestShortLeaves(t *testing.T) {
	var served atomic.Int32
	begun, release := make(chan struct{}, 10), make(chan struct{})
	client, url, hs := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		switch r.URL.Path {
		case "/close":
			w.Header().Set("Connection", "close")
		case "/wait":
			begun <- struct{}{}
			<-release
			fmt.Fprint(w, "done")
		}
	})
	answers := make(chan string, 10)
	wait := func() { answers <- shown(client, "POST", url+"/wait", strings.NewReader("x")) }
	for _, leave := range []func(){
		func() { shown(client, "POST", url+"/close", strings.NewReader("x")) },
		func() { go hs.Shutdown(t.Context()) },
	} {
		served.Store(0)
		passed(t, client, url)
		go wait()
		<-begun
		leave()
		time.Sleep(50 * time.Millisecond) // for the client to hear of it
		select {
		case text := <-answers:
			t.Fatalf("it did not wait for its answer: %s", text)
		default:
		}
		release <- struct{}{}
		if text := <-answers; !strings.Contains(text, "done") {
			t.Errorf("the answer: %s", text)
		}
		if n := served.Load(); n > 2 {
			t.Errorf("%d requests were served: some twice", n)
		}
	}
}

// TestShortLate: a client that takes nothing until a deadline loses its answer alone.
func TestShortLate(t *testing.T) {
	failed := make(chan error, 1)
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/late" {
			return
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Error(err)
		}
		_, err := w.Write(make([]byte, 200_000))
		failed <- err
	})
	p := shortPeer(t, url, 1000)
	id := p.post("/late")
	p.until(id, "reset", func(s *peerStream) bool { return s.reset != nil })
	if err := <-failed; err == nil || errors.Is(err, io.EOF) {
		t.Errorf("what the handler heard: %v", err)
	}
	what, is := over()
	p.until(p.post("/"), what, is)
}
