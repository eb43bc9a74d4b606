package conns_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/conns"
)

// outlived are answers that go on without their handlers.
type outlived struct {
	t      *testing.T
	mu     sync.Mutex
	moved  *sync.Cond
	open   map[string]*answer // by path
	lost   int                // whose clients have gone
	stayed int                // whose handlers had to stay
}

type answer struct {
	conns.Stream
	once sync.Once
	stop func() bool
}

func newOutlived(t *testing.T) *outlived {
	o := &outlived{t: t, open: map[string]*answer{}}
	o.moved = sync.NewCond(&o.mu)
	return o
}

func (o *outlived) change(what func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	what()
	o.moved.Broadcast()
}

// until waits for something.
func (o *outlived) until(what string, is func() bool) {
	o.t.Helper()
	late := false
	timer := time.AfterFunc(time.Minute, func() { o.change(func() { late = true }) })
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !is() {
		if late {
			o.t.Fatalf("not %s: %d open, %d lost, %d stayed", what, len(o.open), o.lost, o.stayed)
		}
		o.moved.Wait()
	}
}

// ServeHTTP serves paths with "watch=" as such answers, and others by package http2.
func (o *outlived) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery == "" {
		sized(w, r)
		return
	}
	path := r.URL.Path
	a := &answer{Stream: leave(o.t, w, r)}
	if a.Stream == nil {
		return
	}
	if !a.Outlive() {
		o.change(func() { o.stayed++ })
		a.Stream.Close(true)
		return
	}
	lost := sync.OnceFunc(func() {
		a.end(false)
		o.change(func() { o.lost++; delete(o.open, path) })
	})
	a.stop = a.WhenEnded(r.Context(), func() { go lost() }) // who tells may hold locks that the end of an answer takes
	o.change(func() { o.open[path] = a })
	if r.Context().Err() != nil {
		go lost()
	}
}

// end ends the answer, once.
func (a *answer) end(complete bool) {
	a.once.Do(func() {
		a.stop()
		a.Close(complete)
		a.Over()
	})
}

func (o *outlived) answer(path string) *answer {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.open[path]
}

func (o *outlived) send(path, text string) {
	o.t.Helper()
	b := append(make([]byte, conns.Headroom), text...)
	if _, err := o.answer(path).TryWrite(&b); err != nil {
		o.t.Errorf("%s: %v", path, err)
	}
}

// goroutines waits until there are no more than so many.
func goroutines(t *testing.T, most int) {
	t.Helper()
	for range 6000 {
		if runtime.NumGoroutine() <= most {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, want %d at most", runtime.NumGoroutine(), most)
}

// TestOutlive: answers over HTTP/2 go on without a goroutine for each, until they end, or
// their client wants no more of them; and the connection serves on.
func TestOutlive(t *testing.T) {
	const streams = 60
	o := newOutlived(t)
	_, _, url, hs := shortSite(t, conns.NewDelivery(conns.DeliveryConfig{}), true, 0, o.ServeHTTP, conns.Short{})
	p := newPeer(t, url, 1000, 2<<20)
	p.stays = true
	whole := func(id uint32) {
		t.Helper()
		what, is := over()
		p.until(id, what, is)
	}
	whole(p.get("/5"))
	before := runtime.NumGoroutine()
	var ids []uint32
	for i := range streams {
		ids = append(ids, p.get(fmt.Sprintf("/%d?watch=1", i)))
	}
	o.until("open", func() bool { return len(o.open) == streams })
	goroutines(t, before+5)
	for i, id := range ids {
		o.send(fmt.Sprintf("/%d", i), fmt.Sprintf("event %d ", i))
		what, is := has(len("event 1 "))
		p.until(id, what, is)
	}

	// All but one are reset by the client, also that whose handler stays.
	for _, id := range ids[:streams-1] {
		p.write.Lock()
		p.must(p.framer.WriteRSTStream(id, http2.ErrCodeCancel))
		p.write.Unlock()
	}
	o.until("lost", func() bool { return o.lost == streams-1 })
	whole(p.get("/7"))

	// The connection is to go, and waits for what goes on: package http2 would close it after
	// a second.
	gone := make(chan error, 1)
	go func() { gone <- hs.Shutdown(t.Context()) }()
	last := fmt.Sprintf("/%d", streams-1)
	time.Sleep(1500 * time.Millisecond)
	o.send(last, "more")
	what, is := has(len("event 59 more"))
	p.until(ids[streams-1], what, is)
	o.answer(last).end(true)
	whole(ids[streams-1])
	if body := string(p.streams[ids[streams-1]].body); body != "event 59 more" {
		t.Errorf("%q", body)
	}
	p.conn.Close()
	if err := <-gone; err != nil {
		t.Error(err)
	}
}

// TestOutliveEnds: the next stream goes on where the last has ended; one that is not whole is
// reset; those of a connection that breaks end; and there are only so many.
func TestOutliveEnds(t *testing.T) {
	const most = 100
	o := newOutlived(t)
	_, _, url := site(t, true, o.ServeHTTP)
	p := newPeer(t, url, 1000, 2<<20)
	for i, complete := range []bool{true, true, false, true} {
		path := fmt.Sprintf("/%d", i)
		id := p.get(path + "?watch=1")
		o.until("open", func() bool { return o.open[path] != nil })
		o.send(path, "x")
		o.answer(path).end(complete)
		p.until(id, "end", func(s *peerStream) bool { return s.ended || s.reset != nil })
		if s := p.streams[id]; s.ended != complete || string(s.body) != "x" {
			t.Errorf("complete %v: %q, ended %v", complete, s.body, s.ended)
		}
		o.change(func() { delete(o.open, path) })
	}
	for i := range most {
		p.get(fmt.Sprintf("/most/%d?watch=1", i))
	}
	o.until("open", func() bool { return len(o.open) == most })
	id := p.get("/one/more?watch=1")
	o.until("stayed", func() bool { return o.stayed == 1 })
	what, is := over()
	p.until(id, what, is)
	p.conn.Close()
	o.until("lost", func() bool { return o.lost == most })
}

// TestOutliveWindow: what a window has no room for waits, and goes out with no handler.
func TestOutliveWindow(t *testing.T) {
	o := newOutlived(t)
	_, _, url := site(t, true, o.ServeHTTP)
	p := newPeer(t, url, 100, 2<<20)
	id := p.get("/w?watch=1")
	o.until("open", func() bool { return len(o.open) == 1 })
	b := append(make([]byte, conns.Headroom), pattern(1000)...)
	if blocked, err := o.answer("/w").TryWrite(&b); !blocked || err != nil {
		t.Error(blocked, err)
	}
	flushed := make(chan error, 1)
	go func() { flushed <- o.answer("/w").Flush() }()
	for got := 100; got < 1000; got += 100 {
		what, is := has(got)
		p.until(id, what, is)
		p.grow(id, 100)
	}
	if err := <-flushed; err != nil {
		t.Error(err)
	}
	o.answer("/w").end(true)
	what, is := over()
	p.until(id, what, is)
}

// TestOutliveHTTP1: a connection over HTTP/1.1 serves the next request when such an answer
// has ended, and the end of the client is noticed.
func TestOutliveHTTP1(t *testing.T) {
	o := newOutlived(t)
	_, client, url := site(t, false, o.ServeHTTP)
	for round := range 3 {
		resp, reused := asks(t, client, url+"/a?watch=1")
		if reused != (round > 0) {
			t.Errorf("round %d: reused %v", round, reused)
		}
		o.until("open", func() bool { return o.open["/a"] != nil })
		o.send("/a", "some")
		o.answer("/a").end(true)
		o.change(func() { delete(o.open, "/a") })
		body, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); string(body) != "some" || err != nil {
			t.Errorf("%q %v", body, err)
		}
	}
	resp, _ := asks(t, client, url+"/b?watch=1")
	o.until("open", func() bool { return o.open["/b"] != nil })
	resp.Body.Close()
	o.until("lost", func() bool { return o.lost == 1 })
}
