package conns_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// TestShortAfterReset: what a client had sent before it heard that its stream was reset ends
// nothing else.
func TestShortAfterReset(t *testing.T) {
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	p := shortPeer(t, url, 1<<20)
	long := p.post("/", "content-length", "4")
	p.data(long, false, "more than announced")
	p.data(long, false, "and more")
	p.data(long, true, "and more")
	p.until(long, "reset", func(s *peerStream) bool { return s.reset != nil })
	what, is := over()
	p.until(p.post("/"), what, is)
}

// TestShortPadding: padding takes windows, which the client gets back.
func TestShortPadding(t *testing.T) {
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, isDirect(w), len(body))
	})
	p := shortPeer(t, url, 1<<20)
	const crumbs, padding = 1000, 255
	id := p.post("/", "content-length", fmt.Sprint(crumbs))
	for i := range crumbs {
		p.write.Lock()
		p.must(p.framer.WriteDataPadded(id, i == crumbs-1, []byte("x"), make([]byte, padding)))
		p.write.Unlock()
	}
	what, is := over()
	if p.until(id, what, is); string(p.streams[id].body) != fmt.Sprint(true, crumbs) {
		t.Errorf("%q", p.streams[id].body)
	}
	if got := p.streams[id].back; got < crumbs*padding-5000 || got > crumbs*(padding+1) {
		t.Errorf("%d bytes of %d were given back", got, crumbs*(padding+1))
	}
}

// TestShortSmallTable: who makes the table of headers smaller may expect the next headers to
// know of it, which those of short answers cannot: they have no table.
func TestShortSmallTable(t *testing.T) {
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, isDirect(w)) })
	p := shortPeer(t, url, 1<<20)
	ask := func() string {
		id := p.post("/")
		what, is := over()
		p.until(id, what, is)
		return string(p.streams[id].body)
	}
	if got := ask(); got != "true" {
		t.Error(got)
	}
	p.write.Lock()
	p.must(p.framer.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 100}))
	p.write.Unlock()
	if got := ask(); got != "false" {
		t.Error("served beside package http2, although the table was made smaller")
	}
}

// TestShortTakesNothing: a client that reads nothing at all does not keep a handler behind its
// deadline, nor behind its own reset.
func TestShortTakesNothing(t *testing.T) {
	ended := make(chan string, 2)
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		}
		piece := make([]byte, 64<<10)
		for range 2000 {
			if _, err := w.Write(piece); err != nil {
				break
			}
		}
		ended <- r.URL.Path
	})
	for _, path := range []string{"/late", "/given/up"} {
		p := newDeafPeer(t, url)
		id := p.post(path)
		if path == "/given/up" {
			time.Sleep(100 * time.Millisecond) // until the kernel takes no more
			p.write.Lock()
			p.must(p.framer.WriteRSTStream(id, http2.ErrCodeCancel))
			p.write.Unlock()
		}
		select {
		case got := <-ended:
			if got != path {
				t.Errorf("%s ended", got)
			}
		case <-time.After(15 * time.Second): // without it, 30 s without progress
			t.Errorf("%s goes on", path)
		}
	}
}

// newDeafPeer reads no more once it may have short requests.
func newDeafPeer(t *testing.T, url string) *peer {
	p := newPeer(t, url, 1<<30, 1<<30)
	what, is := over()
	p.until(p.get("/passed"), what, is)
	p.mu.Lock() // which who reads wants behind the next frame
	t.Cleanup(p.mu.Unlock)
	p.deaf = true
	return p
}

// TestShortFinishes: a server that is to stop serves the requests that have begun, although
// their bodies and the windows for their answers come late.
func TestShortFinishes(t *testing.T) {
	_, url, hs := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, isDirect(w), string(body), err, strings.Repeat("x", 1000))
	})
	p := shortPeer(t, url, 100)
	p.leaves = true
	slow := p.post("/", "content-length", "4")
	p.data(slow, false, "ab")
	narrow := p.post("/")
	what, is := has(100)
	p.until(narrow, what, is)
	stopped := make(chan error, 1)
	go func() { stopped <- hs.Shutdown(t.Context()) }()
	time.Sleep(1500 * time.Millisecond) // package http2 closes idle connections after a second
	p.data(slow, true, "cd")
	p.grow(slow, 5000)
	p.grow(narrow, 5000)
	what, is = over()
	p.until(slow, what, is)
	p.until(narrow, what, is)
	if got := string(p.streams[slow].body); !strings.HasPrefix(got, "trueabcd<nil>") {
		t.Errorf("%.40s", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestShortMisused: a handler that writes when it has returned writes into nobody's answer.
func TestShortMisused(t *testing.T) {
	var kept atomic.Pointer[http.ResponseWriter]
	client, url, hs := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keep" {
			kept.Store(&w)
		}
		fmt.Fprint(w, "ok")
	})
	if got := shown(client, "POST", url+"/keep", nil); !strings.Contains(got, "ok") {
		t.Fatal(got)
	}
	if err := hs.Shutdown(t.Context()); err != nil { // it waits until the answer has ended
		t.Fatal(err)
	}
	wrote := func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		_, _ = (*kept.Load()).Write(bytes.Repeat([]byte("x"), 100))
		return false
	}
	if !wrote() {
		t.Error("it was taken")
	}
}

// TestShortUnread: whatever a client asks for and does not read, no more is kept of it than the
// answers to so many requests as may run.
func TestShortUnread(t *testing.T) {
	var beside atomic.Int64
	answer := make([]byte, 30<<10)
	_, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		if isDirect(w) {
			beside.Add(1)
		}
		_, _ = w.Write(answer)
	})
	p := newDeafPeer(t, url)
	for range 3000 {
		_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := p.begin(true, ":method", "POST", ":scheme", "https", ":authority", "x", ":path", "/"); err != nil {
			break // the server reads no more, or has had enough
		}
	}
	for end := time.Now().Add(2 * time.Minute); beside.Load() < 10 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	if n := beside.Load(); n < 10 || n > 1000 { // what the kernel takes, and 32
		t.Errorf("%d answers of 30 KB were made beside package http2", n)
	}
}

// TestShortStrange: what is in pseudo headers is looked at as by package http2.
func TestShortStrange(t *testing.T) {
	var served atomic.Int32
	_, url, _ := shortly(t, everything, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	for _, fields := range [][]string{
		{":method", "POST", ":scheme", "https", ":authority", "a\r\nb", ":path", "/"},
		{":method", "POST", ":scheme", "https", ":authority", "host", ":path", "https://host/"},
		{":method", "POST", ":scheme", "https", ":authority", "a@host", ":path", "/"},
		{":method", "POST", ":scheme", "https", ":authority", "host", ":path", "/", ":path", "/"},
		{":method", "POST", ":scheme", "https", ":authority", "host", ":path", "/", "X-Upper", "1"},
	} {
		p := shortPeer(t, url, 1<<20)
		served.Store(0)
		id := p.send(true, fields...)
		p.until(id, "reset", func(s *peerStream) bool { return s.reset != nil && *s.reset == http2.ErrCodeProtocol })
		if served.Load() > 0 {
			t.Errorf("%q reached the handler", fields)
		}
	}
}

// TestShortBesideBroken: package http2 does not count a request that it resets as begun. What
// is still sent for one before it ends nothing.
func TestShortBesideBroken(t *testing.T) {
	_, url, _ := shortly(t, everything, func(http.ResponseWriter, *http.Request) {})
	p := shortPeer(t, url, 1<<20)
	what, is := over()
	short := p.post("/")
	p.until(short, what, is)
	broken := p.send(true, ":method", "POST", ":scheme", "https", ":authority", "x", ":path", "/", "X-Upper", "1")
	p.until(broken, "reset", func(s *peerStream) bool { return s.reset != nil })
	p.write.Lock()
	p.must(p.framer.WriteRSTStream(short, http2.ErrCodeCancel))
	p.must(p.framer.WriteWindowUpdate(short, 10))
	p.write.Unlock()
	p.until(p.post("/"), what, is)
	p.until(p.get("/passed"), what, is)
}
