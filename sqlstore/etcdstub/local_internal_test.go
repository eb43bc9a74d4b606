package etcdstub

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestPeerIsLocal: the place is for processes of the same machine alone.
func TestPeerIsLocal(t *testing.T) {
	s := &Server{place: Place{Database: "/data/rowlock.db"}}
	for from, want := range map[string]int{
		"127.0.0.1:4000": 200, "[::1]:4000": 200, "192.0.2.1:4000": 200, "192.0.2.2:4000": 403, "[2001:db8::1]:4000": 403, "": 403, "pipe": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, placePath, nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 2379})))
		r.RemoteAddr, r.Host = from, "127.0.0.1:2379"
		w := httptest.NewRecorder()
		s.handler(true).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("from %q: %d, want %d", from, w.Code, want)
		}
	}
}

// TestByWhichName: a web page whose name resolves to this machine's address learns nothing.
func TestByWhichName(t *testing.T) {
	s := &Server{cfg: Config{Clients: []string{"https://Listens:1"}, Names: []string{"http://advertised:2"}}}
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:2379": 200, "[::1]:2379": 200, "[::1]": 200, "192.0.2.1": 200, "localhost:2379": 200, "listens:1": 200, "advertised": 200, own: 200,
		"page.example:2379": 403, "": 403, "localhost.page.example": 403, "127.0.0.1.page.example:2379": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, placePath, nil)
		r.RemoteAddr, r.Host = "127.0.0.1:4000", host
		w := httptest.NewRecorder()
		s.handler(true).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("called %q: %d, want %d", host, w.Code, want)
		}
	}
}

// TestWhoseFolder: a seal that another user wrote is none.
func TestWhoseFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), placeName)
	if err := writeSeal(path, "seal"); err != nil {
		t.Fatal(err)
	}
	if seal, err := readSeal(path, os.Geteuid()); err != nil || seal != "seal" {
		t.Errorf("%q, %v", seal, err)
	}
	if seal, err := readSeal(path, os.Geteuid()+1); err == nil && runtime.GOOS != "windows" {
		t.Errorf("another user's: %q", seal)
	}
}

// TestPlaces: connections beyond the limit are closed, and a place is free again once its
// connection is closed.
func TestPlaces(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	few := limited{l, make(chan struct{}, 1)}
	defer few.Close()
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			c, err := few.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	first := <-accepted
	if _, err := dial().Read(make([]byte, 1)); err == nil {
		t.Error("a connection too many is kept")
	}
	first.Close()
	first.Close() // gives back one place, not two
	dial()
	second := <-accepted
	if n := len(few.places); n != 1 {
		t.Errorf("%d places are taken", n)
	}
	second.Close()
}
