package conns_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/conns"
)

// leave begins an answer and takes it over.
func leave(t *testing.T, w http.ResponseWriter, r *http.Request) conns.Stream {
	_ = http.NewResponseController(w).Flush()
	s, err := conns.TakeOver(r.Context(), w)
	if s == nil {
		t.Errorf("the answer is not taken over: %v", err)
	}
	return s
}

// asks sends a request and says whether its connection had served others.
func asks(t *testing.T, client *http.Client, url string) (resp *http.Response, reused bool) {
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err = client.Do(req); err != nil {
		t.Fatal(err)
	}
	return resp, reused
}

// TestStream sends more than a client takes, without waiting, and then sees that
// nothing is missing and that the connection serves on.
func TestStream(t *testing.T) {
	const size, most = 100_000, 1000
	sent := make(chan int, 1)
	_, client, url := site(t, false, func(w http.ResponseWriter, r *http.Request) {
		s := leave(t, w, r)
		if s == nil {
			sent <- most
			return
		}
		n := 0
		for stuck := false; !stuck && n < most; n++ {
			b := append(make([]byte, conns.Headroom, conns.Headroom+size), bytes.Repeat([]byte{byte(n)}, size)...)
			var err error
			if stuck, err = s.TryWrite(&b); err != nil {
				t.Error(err)
			}
		}
		sent <- n
		if err := s.Flush(); err != nil {
			t.Error(err)
		}
		b := append(make([]byte, conns.Headroom), "end"...)
		if err := s.Write(&b); err != nil {
			t.Error(err)
		}
		s.Close(true)
	})
	for round := range 3 {
		resp, reused := asks(t, client, url+"?watch=1")
		n := <-sent
		if n == most { // nor at all, without a stream
			t.Fatal("never stuck")
		}
		var want []byte
		for i := range n {
			want = append(want, bytes.Repeat([]byte{byte(i)}, size)...)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, append(want, "end"...)) {
			t.Errorf("%d bytes for %d: %v", len(got), len(want)+3, err)
		}
		resp.Body.Close()
		if reused != (round > 0) {
			t.Errorf("round %d: reused %v", round, reused)
		}
	}
}

// waits sees Wait end with its time, and with Wake, from anywhere and before it.
func waits(t *testing.T, s conns.Stream) {
	began := time.Now()
	if err := s.Wait(began.Add(50 * time.Millisecond)); err != nil || time.Since(began) < 50*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	s.Wake()
	s.Wake()
	far := began.Add(time.Hour)
	if err := s.Wait(far); err != nil {
		t.Error(err)
	}
	go s.Wake()
	if err := s.Wait(far); err != nil {
		t.Error(err)
	}
}

// TestStreamWaits: Wait ends with its time, with Wake from anywhere, before it as
// well, and with the client, which ends the request's context.
func TestStreamWaits(t *testing.T) {
	failed := make(chan error, 1)
	_, client, url := site(t, false, func(w http.ResponseWriter, r *http.Request) {
		s := leave(t, w, r)
		if s == nil {
			return
		}
		defer s.Close(false)
		waits(t, s)
		b := append(make([]byte, conns.Headroom), "go"...)
		if err := s.Write(&b); err != nil {
			t.Error(err)
		}
		err := s.Wait(time.Now().Add(time.Hour))
		if r.Context().Err() != context.Canceled {
			t.Error("the request goes on")
		}
		failed <- err
	})
	resp, _ := asks(t, client, url+"?watch=1")
	if _, err := io.ReadFull(resp.Body, make([]byte, 2)); err != nil {
		t.Error(err)
	}
	resp.Body.Close()
	if err := <-failed; err == nil {
		t.Error("the client's end is not noticed")
	}
}

// TestStreamBreaks: an answer that is not whole, or whose handler panics, does not
// look as if it were, and its connection serves nothing else.
func TestStreamBreaks(t *testing.T) {
	_, client, url := site(t, false, func(w http.ResponseWriter, r *http.Request) {
		s := leave(t, w, r)
		if s == nil {
			return
		}
		b := append(make([]byte, conns.Headroom), "half"...)
		if err := s.Write(&b); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/panic" {
			defer s.Close(false)
			panic(http.ErrAbortHandler)
		}
		s.Close(false)
	})
	for _, path := range []string{"/", "/panic"} {
		resp, reused := asks(t, client, url+path+"?watch=1")
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(got) != "half" || err == nil || reused {
			t.Errorf("%s: %q, %v, reused %v", path, got, err, reused)
		}
	}
}

// TestStaying: what is not a watch does not leave over HTTP/1.1; a handler
// may answer what could have left, or panic, as any other.
func TestStaying(t *testing.T) {
	for _, two := range []bool{false, true} {
		_, client, url := site(t, two, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
			if !two && r.URL.Path == "/list" {
				if s, err := conns.TakeOver(r.Context(), w); s != nil || err != nil {
					t.Errorf("%s %s is taken over: %v", r.Proto, r.URL, err)
				}
			}
			_, _ = io.WriteString(w, "stays")
		})
		for _, path := range []string{"/list?watched=1", "/any?watch=0", "/watch/it"} {
			resp, _ := asks(t, client, url+path)
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != "stays" || err != nil {
				t.Errorf("%s: %q %v", path, got, err)
			}
		}
		if resp, err := client.Get(url + "/panic?watch=1"); err == nil {
			resp.Body.Close()
			t.Error("a panic is answered")
		}
	}
}
