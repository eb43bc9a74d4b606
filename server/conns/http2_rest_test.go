package conns_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/conns"
)

// resting is a site whose connections rest as soon as they can, and one connection to it.
type resting struct {
	*outlived
	url    string
	hs     *http.Server
	below  atomic.Pointer[conns.HTTP2Conn] // of the last request
	client *http2.ClientConn
}

func newResting(t *testing.T) *resting {
	return restingBy(t, conns.DeliveryConfig{})
}

func restingBy(t *testing.T, cfg conns.DeliveryConfig) *resting {
	r := &resting{outlived: newOutlived(t)}
	d := conns.NewDelivery(cfg)
	d.SetRestAfter(time.Millisecond)
	short := conns.Short{Is: func(_, path string) bool { return strings.HasPrefix(path, "/short") }}
	_, _, r.url, r.hs = shortSite(t, d, true, 0, r.ServeHTTP, short)
	r.connect()
	return r
}

// connect goes on over a new connection.
func (r *resting) connect() {
	r.t.Helper()
	raw, err := tls.Dial("tcp", strings.TrimPrefix(r.url, "https://"), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { raw.Close() })
	if r.client, err = (&http2.Transport{}).NewClientConn(raw); err != nil {
		r.t.Fatal(err)
	}
}

// ServeHTTP serves watches, and says of all other requests what it was asked.
func (r *resting) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.below.Store(conns.FromContext(req.Context()).(*conns.HTTP2Conn))
	w.Header().Set("Echo", req.Header.Get("Ask"))
	w.Header().Set("Constant", "is in the table of headers")
	if req.URL.RawQuery != "" {
		r.outlived.ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	fmt.Fprintf(w, "%s %s %v", req.URL.Path, body, isDirect(w))
}

func (r *resting) do(ctx context.Context, path, ask, body string) *http.Response {
	r.t.Helper()
	method, from := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, from = http.MethodPost, strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, from)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Ask", ask)
	resp, err := r.client.RoundTrip(req)
	if err != nil {
		r.t.Fatalf("%s: %v", path, err)
	}
	if resp.Header.Get("Echo") != ask || resp.Header.Get("Constant") != "is in the table of headers" {
		r.t.Errorf("%s: %v", path, resp.Header)
	}
	return resp
}

func (r *resting) whole(path, ask, body, want string) {
	r.t.Helper()
	resp := r.do(r.t.Context(), path, ask, body)
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
		r.t.Errorf("%s: %q %v, want %q", path, got, err, want)
	}
}

// watch opens a watch, and waits until it goes on.
func (r *resting) watch(path string) (resp *http.Response, end context.CancelFunc) {
	r.t.Helper()
	ctx, end := context.WithCancel(r.t.Context())
	resp = r.do(ctx, path+"?watch=1", path, "")
	r.until("open", func() bool { return r.open[path] != nil })
	return resp, end
}

// rests waits until the connection rests, or does not.
func (r *resting) rests(want bool) {
	r.t.Helper()
	for range 6000 {
		if r.below.Load().Rests() == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<20)
	r.t.Fatalf("it does not come to rest %v\n%s", want, buf[:runtime.Stack(buf, true)])
}

func (r *resting) hears(resp *http.Response, path, text string) {
	r.t.Helper()
	r.send(path, text)
	got := make([]byte, len(text))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != text {
		r.t.Errorf("%s: %q %v", path, got, err)
	}
}

func (r *resting) ping() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if err := r.client.Ping(ctx); err != nil {
		r.t.Error(err)
	}
}

// leave tells clients to go away in rounds, as the server does: a round does not tell those for
// whom package http2 is only about to come again.
func (r *resting) leave() {
	var rounds sync.WaitGroup
	rounds.Go(func() {
		for left := false; !left && r.t.Context().Err() == nil; {
			round, cancel := context.WithTimeout(r.t.Context(), 20*time.Millisecond)
			left = r.hs.Shutdown(round) == nil
			cancel()
		}
	})
	r.t.Cleanup(rounds.Wait)
}

// TestRests: a connection rests with watches on it again and again, while events, pings and
// short requests go through; other requests have package http2 come again.
func TestRests(t *testing.T) {
	r := newResting(t)
	first, _ := r.watch("/first")
	for round := range 12 {
		r.rests(true)
		r.hears(first, "/first", fmt.Sprintf("event %d", round))
		r.ping()
		if round > 0 { // package http2 is left the first one of a connection
			r.whole("/short", fmt.Sprint("ask ", round), "posted", "/short posted true")
			r.rests(true)
		}
		r.whole("/long", fmt.Sprint("ask ", round), "", "/long  false")
		path := fmt.Sprintf("/%d", round)
		more, end := r.watch(path)
		r.hears(more, path, "more")
		if round%3 > 0 {
			r.rests(true)
			r.hears(more, path, "more")
		}
		if round%2 == 0 {
			end()
			r.until("lost", func() bool { return r.lost == round/2+1 })
		}
	}
	r.rests(true)
	r.answer("/first").end(true)
	if rest, err := io.ReadAll(first.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

// TestRestLeavesNothing: a connection that rests has one goroutine here, the one of package
// net/http, and does not rest when nothing goes on.
func TestRestLeavesNothing(t *testing.T) {
	r := newResting(t)
	r.whole("/long", "", "", "/long  false")
	before := runtime.NumGoroutine()
	resp, _ := r.watch("/w")
	r.rests(true)
	goroutines(t, before-1) // of package http2 were two, and the client has none for the watch
	r.answer("/w").end(true)
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
	r.rests(false)
	r.whole("/long", "", "", "/long  false")
}

// TestRestEnds: the end of a client is noticed, and that of the server waits for what goes on.
func TestRestEnds(t *testing.T) {
	r := newResting(t)
	resp, _ := r.watch("/w")
	r.rests(true)
	below := r.below.Load()
	p := newPeer(t, r.url, 1000, 2<<20)
	p.stays = true
	posting := p.post("/long", "content-length", "4") // so that its connection does not rest
	other := p.get("/other?watch=1")
	r.until("open", func() bool { return r.open["/other"] != nil })
	r.below.Store(below)
	ended := make(chan error, 1)
	go func() { ended <- r.hs.Shutdown(t.Context()) }()
	p.until(other, "told to go away", func(*peerStream) bool { return p.told }) // and so all sessions that there are
	r.hears(resp, "/w", "more")
	// It is told to go away by an answer, so that package http2 has nothing under way in a second.
	r.below.Load().Farewell()
	r.rests(false)
	time.Sleep(10 * time.Millisecond)
	r.hears(resp, "/w", "more")
	p.data(posting, true, "done")
	what, is := over()
	p.until(posting, what, is)
	r.client.Close()
	p.conn.Close()
	r.until("lost", func() bool { return r.lost == 2 })
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRestPartsLate: a client that was told to go away keeps its watches, and its pings are
// answered, when package http2 has left for good.
func TestRestPartsLate(t *testing.T) {
	r := newResting(t)
	resp, _ := r.watch("/w")
	r.rests(true)
	r.below.Load().Farewell()
	r.rests(false)
	r.leave()
	r.rests(true) // package http2 has closed the connection, for its part, after a second
	r.ping()
	r.hears(resp, "/w", "more")
	r.answer("/w").end(true)
	if rest, err := io.ReadAll(resp.Body); len(rest) > 0 || err != nil {
		t.Errorf("%q %v", rest, err)
	}
}

// TestRestSettings: what a client has said of its windows holds for package http2 when it comes
// again: a peer counts what it gets.
func TestRestWindows(t *testing.T) {
	r := newResting(t)
	p := newPeer(t, r.url, 1000, 2<<20)
	id := p.get("/w?watch=1")
	r.until("open", func() bool { return r.open["/w"] != nil })
	what, is := over()
	for round := range 8 {
		r.rests(true)
		p.settings(uint32(600 + 100*round))
		p.grow(id, 1000)
		r.rests(true)
		r.send("/w", strings.Repeat("x", 300))
		more, has := has(300 * (round + 1))
		p.until(id, more, has)
		long := p.get("/" + strings.Repeat("l", 2000))
		p.until(long, "as much as its window", func(s *peerStream) bool { return s.window == 0 })
		p.grow(long, 5000)
		p.until(long, what, is)
	}
	p.conn.Close()
	r.until("lost", func() bool { return r.lost == 1 })
}

// given is how much of its connection's window a peer was given so far, or given back.
func (p *peer) given() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.back
}

// TestRestBodies: a connection rests when package http2 has got bodies, and its client is given all of its window back.
func TestRestBodies(t *testing.T) {
	r := newResting(t)
	p := newPeer(t, r.url, 100_000, 2<<20)
	id := p.get("/w?watch=1")
	r.until("open", func() bool { return r.open["/w"] != nil })
	r.rests(true)
	r.send("/w", "first")
	first, have := has(len("first"))
	p.until(id, first, have)
	what, is := over()
	greeting, sent := p.given(), 0
	for round := range 40 {
		post := p.post("/long", "content-length", fmt.Sprint(1000+100*round))
		if round%2 > 0 {
			p.data(post, false, strings.Repeat("x", 500))
			p.data(post, true, strings.Repeat("x", 500+100*round))
		} else {
			p.data(post, true, strings.Repeat("x", 1000+100*round))
		}
		p.until(post, what, is)
		r.rests(true)
		sent += 1000 + 100*round
		p.until(id, fmt.Sprintf("%d bytes given back", sent), func(*peerStream) bool { return p.back-greeting >= sent })
		if p.given() != greeting+sent {
			t.Fatalf("round %d: %d bytes given back for %d", round, p.given()-greeting, sent)
		}
	}
	r.send("/w", "more")
	more, has := has(len("firstmore"))
	p.until(id, more, has)
}

// TestRestAsksNoMore: a connection that can never rest any more is not looked at again and again.
func TestRestAsksNoMore(t *testing.T) {
	r := newResting(t)
	resp, _ := r.watch("/w")
	r.rests(true)
	c := r.below.Load()
	c.Farewell()
	r.rests(false)
	r.ping() // package http2 has answered, and so somebody was to look again when it came
	for range 6000 {
		if !c.Asks() && !c.Rests() {
			r.hears(resp, "/w", "more")
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("it is asked: %v; it rests: %v", c.Asks(), c.Rests())
}

// TestRestsWithAnySettings: whatever a client says in settings while its connection rests, it rests again:
// else there would be nobody for whom package http2 stays. Who has made its table of headers smaller hears
// of that with the next headers.
func TestRestsWithAnySettings(t *testing.T) {
	many := make([]http2.Setting, 17)
	for i := range many {
		many[i] = http2.Setting{ID: http2.SettingID(100 + i), Val: 1}
	}
	table := func(size uint32) []http2.Setting {
		return []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: size}}
	}
	for name, tc := range map[string]struct {
		frames [][]http2.Setting
		begins []byte // headers, with the new size of the table
	}{
		"a small table":                   {[][]http2.Setting{table(0)}, []byte{0x20}},
		"one that is small for a time":    {[][]http2.Setting{table(10), table(4096)}, []byte{0x2a}},
		"many settings":                   {[][]http2.Setting{many}, nil},
		"settings before others answered": {[][]http2.Setting{many[:1], many[1:2], many[2:3], many[3:4]}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResting(t)
			p := newPeer(t, r.url, 10_000, 2<<20)
			id := p.get("/w?watch=1")
			r.until("open", func() bool { return r.open["/w"] != nil })
			for round := range 3 {
				r.rests(true)
				p.write.Lock()
				for _, s := range tc.frames {
					p.must(p.framer.WriteSettings(s...))
				}
				p.write.Unlock()
				p.until(id, "an answer to the settings", func(*peerStream) bool { return p.acks >= 2+round })
				r.rests(true)
				long := p.get("/long")
				what, is := over()
				p.until(long, what, is)
				p.mu.Lock()
				if !bytes.HasPrefix(p.block, tc.begins) {
					t.Errorf("the headers begin with %x", p.block[:2])
				}
				p.mu.Unlock()
				r.send("/w", "event")
				more, has := has(5 * (round + 1))
				p.until(id, more, has)
			}
		})
	}
}

// TestRestSettles: where package http2 may answer several settings at once, a ping of this side's tells when it
// has, also if more come meanwhile. The client hears nothing of that.
func TestRestSettles(t *testing.T) {
	r := newResting(t)
	p := newPeer(t, r.url, 10_000, 2<<20)
	what, is := over()
	p.until(p.get("/long"), what, is)
	id := p.get("/w?watch=1")
	r.until("open", func() bool { return r.open["/w"] != nil })
	for round := range 30 {
		for n := range 1 + round%5 {
			p.settings(uint32(9000 + 10*round + n))
		}
		if round%3 == 0 {
			p.until(p.get("/long"), what, is)
		}
		r.rests(true)
		r.send("/w", "event")
		more, has := has(5 * (round + 1))
		p.until(id, more, has)
		p.mu.Lock()
		if p.pongs > 0 {
			t.Error("the client was sent an answer to a ping of this side's")
		}
		p.mu.Unlock()
	}
}

// TestRestSettingsLate: settings are answered when package http2 has left for good.
func TestRestSettingsLate(t *testing.T) {
	r := newResting(t)
	p := newPeer(t, r.url, 1000, 2<<20)
	p.stays = true
	id := p.get("/w?watch=1")
	r.until("open", func() bool { return r.open["/w"] != nil })
	r.rests(true)
	r.below.Load().Farewell()
	r.rests(false)
	r.leave()
	r.rests(true)
	for n := range 3 {
		p.settings(uint32(2000 + n))
		p.until(id, fmt.Sprintf("answer to settings %d", n), func(*peerStream) bool { return p.acks == n+2 })
	}
	r.send("/w", strings.Repeat("x", 1500))
	more, has := has(1500)
	p.until(id, more, has)
}

// TestRestsFromMany: what connections rest depends on how many there are when they begin.
func TestRestsFromMany(t *testing.T) {
	r := restingBy(t, conns.DeliveryConfig{RestFrom: 2})
	first, end := r.watch("/first")
	defer first.Body.Close()
	defer end()
	alone := r.below.Load()
	r.connect()
	second, end := r.watch("/second")
	defer second.Body.Close()
	defer end()
	r.rests(true)
	if !alone.NeverRests() || alone.Rests() {
		t.Error("the first connection may rest")
	}
	none := restingBy(t, conns.DeliveryConfig{RestFrom: -1})
	third, end := none.watch("/third")
	defer third.Body.Close()
	defer end()
	if !none.below.Load().NeverRests() {
		t.Error("a connection may rest where none is to")
	}
}
