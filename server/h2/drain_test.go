package h2_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/rowlock/rowlock/server/h2"
	"github.com/rowlock/rowlock/server/wire"
)

// TestDrain: a client gets GOAWAY and a PING; requests that it sends before it acknowledges the PING are
// served, and the connection closes when they are done.
func TestDrain(t *testing.T) {
	drains := func(name string, f func(s *h2.Server, p *piped, gate chan struct{})) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := make(chan struct{})
				s := h2.New(h2.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gate })})
				defer s.Close()
				p := pipe(t, s, true)
				p.ask(1, "GET", "/", true)
				synctest.Wait()
				var running sync.WaitGroup
				running.Go(func() {
					if err := s.Drain(context.Background()); err != nil {
						t.Error(err)
					}
				})
				p.wants("at first", false, "GOAWAY NO_ERROR", "PING rowlock.")
				f(s, p, gate)
				running.Wait()
			})
		})
	}
	drains("heard", func(_ *h2.Server, p *piped, gate chan struct{}) {
		p.ask(3, "GET", "/", true) // on its way
		p.must(p.WritePing(true, [8]byte([]byte("rowlock."))))
		p.wants("announced", false, "GOAWAY NO_ERROR")
		p.ask(5, "GET", "/", true) // which it should not
		time.Sleep(time.Hour)
		close(gate)
		time.Sleep(10 * time.Millisecond)
		p.wants("done", true, "HEADERS", "HEADERS")
	})
	drains("not heard", func(_ *h2.Server, p *piped, gate chan struct{}) {
		time.Sleep(200 * time.Millisecond)
		p.wants("before", false)
		time.Sleep(100 * time.Millisecond)
		p.wants("announced", false, "GOAWAY NO_ERROR")
		close(gate)
		time.Sleep(10 * time.Millisecond)
		p.wants("done", true, "HEADERS")
	})
}

// TestDrainsThoseThatCome: a client that connects while the server drains gets SETTINGS first, and then
// GOAWAY.
func TestDrainsThoseThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		s := h2.New(h2.Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gate })})
		defer s.Close()
		p := pipe(t, s, true)
		p.ask(1, "GET", "/", true)
		synctest.Wait()
		var running sync.WaitGroup
		running.Go(func() {
			if err := s.Drain(context.Background()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		late := pipe(t, s, true)
		if first := <-late.first; first != http2.FrameSettings {
			t.Errorf("it hears of %v first", first)
		}
		late.wants("at first", false, "GOAWAY NO_ERROR", "PING rowlock.")
		close(gate)
		running.Wait()
	})
}

// watched returns a server with a connection on which fifty watches have begun.
func watched(t *testing.T) (s *h2.Server, p *piped, conn wire.Conn, watches []wire.Stream) {
	t.Helper()
	streams := make(chan wire.Stream, 50)
	s = h2.New(h2.Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn = wire.From(r.Context())
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		stream, _ := wire.Detach(w)
		streams <- stream
	})})
	p = pipe(t, s, true)
	for i := range 50 {
		p.ask(uint32(2*i+1), "GET", "/", true)
		watches = append(watches, <-streams)
	}
	_, _ = p.received()
	return s, p, conn, watches
}

// TestTogether: events that watches of a connection write while others are about to write leave together.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, conn, list := watched(t)
		defer s.Close()
		before := p.writes.Load()
		conn.AddWriter()
		for _, one := range list {
			b := append(make([]byte, wire.Headroom), "event"...)
			if blocked, err := one.TryWrite(&b); blocked || err != nil {
				t.Fatal(blocked, err)
			}
		}
		if got, _ := p.received(); len(got) != 0 {
			t.Errorf("%d frames leave at once", len(got))
		}
		conn.RemoveWriter()
		if got, _ := p.received(); len(got) != 50 || p.writes.Load()-before != 1 {
			t.Errorf("%d frames, %d writes", len(got), p.writes.Load()-before)
		}
		for _, one := range list {
			one.Close(true)
			one.Over()
		}
		p.conn.Close()
	})
}

// TestEndsTogether: while the server drains, the ends of all watches of a connection and GOAWAY are one write, whatever
// ends the watches. GOAWAY comes after them and in another TLS record: the h2 library of Python accepts nothing after
// GOAWAY, and drops what it reads together with it.
func TestEndsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _, list := watched(t)
		defer s.Close()
		before := p.writes.Load()
		s.GoAway()
		p.wants("at first", false)
		var ends sync.WaitGroup
		for _, one := range list {
			ends.Go(func() {
				one.Close(true)
				one.Over()
			})
		}
		ends.Wait()
		if got, _ := p.received(); len(got) != 0 {
			t.Errorf("%d frames are sent one by one", len(got))
		}
		var running sync.WaitGroup
		running.Go(func() {
			if err := s.Drain(context.Background()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		p.wants("then", false, append(slices.Repeat([]string{"DATA"}, 50), "GOAWAY NO_ERROR", "PING rowlock.")...)
		if n := p.writes.Load() - before; n != 1 {
			t.Errorf("%d writes, want 1", n)
		}
		if p.goAway <= p.data {
			t.Error("GOAWAY is in the TLS record of the last end")
		}
		p.must(p.WritePing(true, [8]byte([]byte("rowlock."))))
		running.Wait()
	})
}

// TestGoAwayBeforeEnds: a connection whose watches do not end gets GOAWAY after some time.
func TestGoAwayBeforeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _, list := watched(t)
		defer s.Close()
		var running sync.WaitGroup
		running.Go(func() {
			if err := s.Drain(context.Background()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(200 * time.Millisecond)
		p.wants("before", false)
		time.Sleep(100 * time.Millisecond)
		p.wants("then", false, "GOAWAY NO_ERROR", "PING rowlock.")
		p.must(p.WritePing(true, [8]byte([]byte("rowlock."))))
		p.wants("acknowledged", false, "GOAWAY NO_ERROR")
		for _, one := range list {
			one.Close(true)
			one.Over()
		}
		running.Wait()
		p.wants("at the end", true, slices.Repeat([]string{"DATA"}, 50)...)
	})
}
