package conns

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"
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
	for _, n := range []byte{makeRoom(-1), makeRoom(1), makeApplyRoom(-1), makeApplyRoom(1)} {
		if n != 0 {
			t.Errorf("room holds %d", n)
		}
	}
}

// TestRoomIsThere: a stack has grown when there is room, and does not grow below it; for an apply
// there is more.
func TestRoomIsThere(t *testing.T) {
	const apply = "application/apply-patch+yaml"
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would take room back that nobody uses
	runtime.GC()                                     // ends one that has begun
	for _, tc := range []struct {
		method, contentType string
		grows               bool // where an apply has its room
	}{
		{http.MethodPost, "application/json", true}, {http.MethodPatch, "application/merge-patch+json", true},
		{http.MethodPatch, apply, false}, {http.MethodPatch, "application/apply-patch+cbor", false}, {http.MethodPut, apply, true},
	} {
		r := httptest.NewRequest(tc.method, "/", nil)
		r.Header.Set("Content-Type", tc.contentType)
		var at [4]uintptr
		done := make(chan struct{})
		go func() {
			defer close(done)
			at[0] = stackAt()
			makeRoomFor(r)
			at[1] = stackAt()
			makeRoom(1)
			at[2] = stackAt()
			makeApplyRoom(1)
			at[3] = stackAt()
		}()
		<-done
		if at[0] == at[1] || at[1] != at[2] || (at[2] != at[3]) != tc.grows {
			t.Errorf("%s %s: the stack was at %x", tc.method, tc.contentType, at)
		}
	}
}

// stackAt is where the stack of a goroutine lies, seen from one function.
//
//go:noinline
func stackAt() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
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
