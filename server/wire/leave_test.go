package wire_test

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// leaving is a connection of HTTP/1 whose client can leave.
type leaving struct {
	wire.Conn
	gone atomic.Bool
}

func (l *leaving) Closed() bool { return l.gone.Load() }

// TestUntilClosed: the context of a request lives as long as its client is there or its handler runs. No goroutine is left
// behind, or the bubble would not end.
func TestUntilClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &leaving{}
		ctx := context.WithValue(t.Context(), wire.Key{}, wire.Conn(conn))
		until, stop := wire.UntilClosed(ctx)
		time.Sleep(time.Hour)
		if err := until.Err(); err != nil {
			t.Errorf("the client is there: %v", err)
		}
		conn.gone.Store(true)
		time.Sleep(time.Minute)
		if until.Err() == nil {
			t.Error("the context outlives its client")
		}
		stop()

		conn.gone.Store(false)
		until, stop = wire.UntilClosed(ctx)
		stop()
		if until.Err() == nil {
			t.Error("the context outlives its handler")
		}
	})
}

// TestClosed: a client that has closed the connection is known to have, though what it sent before is not read.
func TestClosed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says so")
	}
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
	c, err := wire.Listener{Listener: l}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := c.(*wire.Socket)
	if _, err := client.Write([]byte("unread")); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReadable(); err != nil || s.Closed() {
		t.Errorf("a client that is there: %v %v", err, s.Closed())
	}
	client.Close()
	for end := time.Now().Add(time.Minute); !s.Closed(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that is gone is not noticed")
		}
	}
	c.Close()
	if !s.Closed() {
		t.Error("a connection that this server has closed is open")
	}
}
