package conns_test

import (
	"fmt"
	"net/http"
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
	case <-time.After(20 * time.Second):
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
