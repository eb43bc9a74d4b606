package yield_test

import (
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rowlock/rowlock/codecs/yield"
)

// TestNow: a goroutine for which something has arrived from the network runs after a few calls, though the caller never stops, and
// another goroutine that yields is always runnable, too.
func TestNow(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	raw, err := client.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}

	var read, over atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for b := make([]byte, 1); ; read.Add(1) {
			if _, err := server.Read(b); err != nil {
				return
			}
		}
	}()
	other := make(chan struct{})
	go func() {
		defer close(other)
		for over.Load() == 0 {
			yield.Now()
		}
	}()
	const rounds, calls = 50, 10
	late := 0
	for range rounds {
		before := read.Load()
		if raw.Write(func(fd uintptr) bool {
			_, err = syscall.Write(int(fd), []byte("x"))
			return true
		}) != nil || err != nil {
			t.Fatal(err)
		}
		for n := 0; read.Load() == before; n++ {
			if n == calls {
				late++
			}
			yield.Now()
		}
	}
	over.Store(1)
	<-other
	if late > rounds/2 { // the kernel may have delayed a few
		t.Errorf("%d of %d bytes were noticed after more than %d calls", late, rounds, calls)
	}
	server.Close()
	<-ended
}
