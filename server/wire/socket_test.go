package wire_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rowlock/rowlock/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener with one connection of a pipe.
type pipes struct {
	net.Listener
	c net.Conn
}

func (p pipes) Accept() (net.Conn, error) { return p.c, nil }

// TestHeldBytesAreNotLost: a full record waits for the next one, for a millisecond.
func TestHeldBytesAreNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c, err := wire.Listener{Listener: pipes{c: near}}.Accept()
		if err != nil {
			t.Fatal(err)
		}
		bulk := []byte(strings.Repeat("x", 16_406))
		began := time.Now()
		if n, err := c.Write(bulk); n != len(bulk) || err != nil {
			t.Fatal(n, err)
		}
		got := make([]byte, len(bulk))
		if _, err := io.ReadFull(far, got); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began); late != time.Millisecond {
			t.Errorf("the held record came after %v", late)
		}
		// The next write reports a delayed one that failed.
		if _, err := c.Write(bulk); err != nil {
			t.Fatal(err)
		}
		far.Close()
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if _, err := c.Write([]byte("y")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after a failure: %v", err)
		}
	})
}

// connect returns both ends of a connection, of which the kernel keeps little.
func connect(t *testing.T) (near *wire.Socket, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if far, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close(); accepted.Close() })
	if err := accepted.(*net.TCPConn).SetWriteBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	return wire.NewSocket(accepted), far
}

// TestQueue: data that a client does not read is kept, in order, and does not block the writer until
// it flushes.
func TestQueue(t *testing.T) {
	near, far := connect(t)
	q, err := near.UseQueue()
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for i := 0; !q.Blocked(); i++ {
		part := bytes.Repeat([]byte{byte(i)}, 100_000)
		want = append(want, part...)
		q.Cork()
		for _, half := range [][]byte{part[:30_000], part[30_000:]} {
			if _, err := near.Write(half); err != nil {
				t.Fatal(err)
			}
		}
		kept, err := q.Uncork()
		if err != nil || kept != q.Blocked() {
			t.Fatal(kept, err)
		}
	}
	if _, err := near.Write([]byte("behind")); err != nil {
		t.Fatal(err)
	}
	flushed := make(chan error, 1)
	go func() { flushed <- q.Flush() }()
	got := make([]byte, len(want)+len("behind"))
	if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, append(want, "behind"...)) {
		t.Errorf("%d bytes differ: %v", len(got), err)
	}
	if err := <-flushed; err != nil || q.Blocked() {
		t.Error(err)
	}
	far.Close()
	for err == nil { // until the kernel has received it
		_, err = near.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
}

// TestAwaitReadable: it ends with bytes, which are still there, with a deadline, and with the end.
func TestAwaitReadable(t *testing.T) {
	near, far := connect(t)
	awaited := make(chan error)
	await := func() { awaited <- near.AwaitReadable() }
	go await()
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	var got [4]byte
	if err := <-awaited; err != nil {
		t.Error(err)
	}
	if n, err := near.Read(got[:]); n != 1 || got[0] != 'x' || err != nil {
		t.Error(n, got, err)
	}
	go await()
	if err := near.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := <-awaited; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if err := near.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go await()
	far.Close()
	if err := <-awaited; err != nil {
		t.Error(err)
	}
	if n, err := near.Read(got[:]); err != io.EOF {
		t.Error(n, err)
	}
}
