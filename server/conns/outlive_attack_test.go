package conns_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/conns"
)

// posts are short, and gets may be watches.
var posts = conns.Short{Is: func(method, _ string) bool { return method == http.MethodPost }}

// windowUpdates are sent by a peer that does not count them.
func (p *peer) windowUpdates(id uint32, n ...uint32) {
	p.t.Helper()
	p.write.Lock()
	defer p.write.Unlock()
	for _, n := range n {
		p.must(p.framer.WriteWindowUpdate(id, n))
	}
}

// TestOutliveOverflows: an answer that goes on without its handler ends when its window becomes
// larger than one may be. Package http2 does not know of that window, and nothing else ends.
func TestOutliveOverflows(t *testing.T) {
	const initial, largest = 1000, 1<<31 - 1
	o := newOutlived(t)
	_, _, url, _ := shortSite(t, conns.NewDelivery(conns.DeliveryConfig{}), true, 0, o.ServeHTTP, posts)
	p := newPeer(t, url, initial, 2<<20)
	ids := []uint32{p.get("/0?watch=1"), p.get("/1?watch=1"), p.get("/2?watch=1")}
	o.until("open", func() bool { return len(o.open) == 3 })
	for lost, id := range ids[:2] { // one of them is that whose handler stays for the others
		p.windowUpdates(id, largest-initial)
		what, is := over()
		p.until(p.get("/5"), what, is)
		if s := p.streams[id]; s.reset != nil {
			t.Errorf("a window as large as may be: %s", *s.reset)
		}
		p.windowUpdates(id, 1)
		p.until(id, "reset", func(s *peerStream) bool { return s.reset != nil && *s.reset == http2.ErrCodeFlowControl })
		o.until("lost", func() bool { return o.lost == lost+1 })
	}
	o.send("/2", "goes on")
	what, is := has(len("goes on"))
	p.until(ids[2], what, is)
	what, is = over()
	p.until(p.get("/5"), what, is)
}

// TestOutliveGrows: a client may grant windows while its answer goes over to nobody's handler.
// What it is about then is looked at by two, which only the race detector sees.
func TestOutliveGrows(t *testing.T) {
	const streams = 40
	o := newOutlived(t)
	_, _, url, _ := shortSite(t, conns.NewDelivery(conns.DeliveryConfig{}), true, 0, o.ServeHTTP, posts)
	p := newPeer(t, url, 1000, 2<<20)
	for i := range streams {
		id := p.get(fmt.Sprintf("/%d?watch=1", i))
		for range 300 {
			p.windowUpdates(id, 1)
		}
	}
	o.until("open", func() bool { return len(o.open) == streams })
}

// TestTokenWithoutWindow: a client that takes all of a connection's window, and grants no more,
// does not keep the handlers of its watches for good.
func TestTokenWithoutWindow(t *testing.T) {
	const left, grown = 10, 2 << 20 // bytes; the token has more
	d := conns.NewDelivery(conns.DeliveryConfig{})
	d.SetPatience(200 * time.Millisecond)
	returned := make(chan struct{}, 1)
	_, _, url := siteOf(t, d, true, 0, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/watch" {
			sized(w, r)
			return
		}
		_ = http.NewResponseController(w).Flush()
		if s, err := d.Open(r.Context(), w); s != nil || err != nil {
			t.Errorf("it goes on: %v", err)
		}
		returned <- struct{}{}
	})
	initial := uint32(grown + 65535 - left)
	p := newPeer(t, url, initial, grown)
	what, is := has(int(initial))
	p.until(p.get("/3000000"), what, is)
	watch := p.get("/watch")
	select {
	case <-returned:
	case <-time.After(2 * time.Minute):
		t.Error("the handler waits for a window")
	}
	if t.Failed() {
		p.conn.Close()
		<-returned
		return
	}
	p.until(watch, "reset", func(s *peerStream) bool { return s.reset != nil })
	if !d.Direct() {
		t.Error("the direct way was given up")
	}
}

// TestStreamsTogether: a client may have as many streams as it was told, whoever serves them: by
// package http2, beside it, or when their handlers have returned. One more may come again, and ends
// nothing.
func TestStreamsTogether(t *testing.T) {
	const most = 100
	o := newOutlived(t)
	release := make(chan struct{})
	var running atomic.Int32
	_, _, url, _ := shortSite(t, conns.NewDelivery(conns.DeliveryConfig{}), true, 0, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/waits" {
			o.ServeHTTP(w, r)
			return
		}
		_, _ = io.WriteString(w, "begun")
		_ = http.NewResponseController(w).Flush()
		running.Add(1)
		defer running.Add(-1)
		<-release
	}, posts)
	defer close(release)
	p := newPeer(t, url, 1000, 2<<20)
	whole := func(id uint32) {
		t.Helper()
		what, is := over()
		p.until(id, what, is)
	}
	whole(p.get("/5"))
	var watches, others []uint32
	for i := range 40 {
		watches = append(watches, p.get(fmt.Sprintf("/%d?watch=1", i)))
	}
	for range 30 {
		others = append(others, p.get("/waits"), p.post("/waits"))
	}
	o.until("open", func() bool { return len(o.open) == 40 })
	for _, id := range others {
		what, is := has(len("begun"))
		p.until(id, what, is)
	}
	refused := func() {
		t.Helper()
		for _, id := range []uint32{p.get("/5"), p.post("/5"), p.get("/more?watch=1"), p.post("/5", "content-length", "3")} {
			p.until(id, "refusal", func(s *peerStream) bool { return s.ended || s.reset != nil })
			if s := p.streams[id]; s.ended || *s.reset != http2.ErrCodeRefusedStream {
				t.Errorf("one stream more than %d: ended %v, reset %v", most, s.ended, s.reset)
			}
		}
	}
	refused()
	p.data(p.next-2, true, "abc") // which it had sent before it was told

	// Each kind of them makes room for each other.
	p.write.Lock()
	p.must(p.framer.WriteRSTStream(watches[0], http2.ErrCodeCancel))
	p.write.Unlock()
	whole(p.get("/5"))
	watch := p.get("/again?watch=1")
	o.until("open", func() bool { return o.open["/again"] != nil })
	refused()
	o.answer("/again").end(true)
	whole(watch)
	whole(p.post("/5"))
	p.write.Lock()
	p.must(p.framer.WriteRSTStream(others[0], http2.ErrCodeCancel))
	p.must(p.framer.WriteRSTStream(others[1], http2.ErrCodeCancel))
	p.write.Unlock()
	whole(p.post("/5"))
	whole(p.get("/5"))
	if n := running.Load(); n != 60 {
		t.Errorf("%d handlers run", n)
	}
}
