package conns

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A request has its room before anything runs that would grow the stack step by step, and
// is handed on as it is; reads are as well.
func TestRoomy(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, ""} {
		served := 0
		h := roomy(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			served++
			if r.Method != method {
				t.Errorf("%q arrived as %q", method, r.Method)
			}
		}))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method = method
		h.ServeHTTP(httptest.NewRecorder(), r)
		if served != 1 {
			t.Errorf("%q was served %d times", method, served)
		}
	}
	// The frame must be there: a smaller one would leave the stack to grow later.
	if n := makeRoom(roomSize + 1); n != 0 {
		t.Errorf("room holds %d", n)
	}
}

// Stacks that grow below deep frames, and those that have grown before.
func BenchmarkRoom(b *testing.B) {
	deep := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { descend(60, r) })
	for _, way := range []struct {
		name string
		h    http.Handler
	}{{"grown step by step", deep}, {"grown at once", roomy(deep)}} {
		b.Run(way.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			for b.Loop() {
				done := make(chan struct{})
				go func() {
					defer close(done)
					way.h.ServeHTTP(nil, r)
				}()
				<-done
			}
		})
	}
}

// descend has as many frames as the filters, each with some pointers.
//
//go:noinline
func descend(n int, r *http.Request) *http.Request {
	var held [12]*http.Request
	held[n%12] = r
	if n == 0 {
		return held[0]
	}
	next := descend(n-1, held[n%12])
	return next
}
