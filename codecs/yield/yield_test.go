package yield_test

import (
	"bytes"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/codecs/yield"
)

// yields reports whether another goroutine always runs before work ends. Sometimes one also does because the runtime, or the system,
// interrupts work.
func yields(work func()) bool {
	for range 20 {
		var ran atomic.Bool
		done := make(chan struct{})
		go func() {
			ran.Store(true)
			close(done)
		}()
		work()
		is := ran.Load()
		if <-done; !is {
			return false
		}
	}
	return true
}

// TestWithin: work on a text yields once in each 64 KB.
func TestWithin(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range []struct {
		from, to int
		want     bool
	}{{0, 1<<16 - 1, false}, {1<<16 - 1, 1 << 16, true}, {1 << 16, 1<<17 - 1, false}, {100, 1 << 20, true}} {
		if got := yields(func() { yield.Within(c.from, c.to) }); got != c.want {
			t.Errorf("from %d to %d: another goroutine ran: %t", c.from, c.to, got)
		}
	}
}

// TestAppend: copying a megabyte yields, copying little does not.
func TestAppend(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for size, want := range map[int]bool{0: false, 1 << 10: false, 1<<20 + 1: true} {
		b, dst := bytes.Repeat([]byte("b"), size), make([]byte, 0, 1<<20+2)
		if got := yields(func() { dst = yield.Append(append(dst[:0], 'a'), b) }); got != want {
			t.Errorf("%d bytes: another goroutine ran: %t", size, got)
		}
		if dst[0] != 'a' || !bytes.Equal(dst[1:], b) {
			t.Errorf("%d bytes: %d appended", size, len(dst)-1)
		}
	}
}
