package wire_test

import (
	"net"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// TestClosed: the server notices that a client has closed the connection before it has read all that the client sent. Only
// Linux reports that.
func TestClosed(t *testing.T) {
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
