package h1stream

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// reluctant is a connection whose client reads a part of the socket's buffer every ten seconds. The handshake uses a pipe.
type reluctant struct {
	net.Conn
	fds [2]int // of the server and of the client
	by  time.Time
}

func (c *reluctant) SetWriteDeadline(at time.Time) error {
	c.by = at
	return nil
}

// SyscallConn implements syscall.Conn.
func (c *reluctant) SyscallConn() (syscall.RawConn, error) { return reluctantRaw{c}, nil }

type reluctantRaw struct{ c *reluctant }

func (r reluctantRaw) Control(f func(uintptr)) error {
	f(uintptr(r.c.fds[0]))
	return nil
}

func (reluctantRaw) Read(func(uintptr) bool) error { return errors.ErrUnsupported }

func (r reluctantRaw) Write(f func(uintptr) bool) error {
	for !f(uintptr(r.c.fds[0])) {
		time.Sleep(10 * time.Second)
		if !time.Now().Before(r.c.by) {
			return os.ErrDeadlineExceeded
		}
		if _, err := syscall.Read(r.c.fds[1], make([]byte, 128<<10)); err != nil {
			return err
		}
	}
	return nil
}

// TestReluctantClients: a client that takes a little of a watch now and then loses it as if it took nothing.
func TestReluctantClients(t *testing.T) {
	donor := httptest.NewUnstartedServer(nil)
	donor.StartTLS()
	certificates := donor.TLS.Certificates
	donor.Close()
	const size = 4 << 20 // far more than the kernel keeps
	for name, write := range map[string]func(s *stream, b *[]byte) error{
		"Write": (*stream).Write,
		"Flush": func(s *stream, b *[]byte) error {
			if blocked, err := s.TryWrite(b); !blocked || err != nil {
				t.Errorf("blocked %t, %v", blocked, err)
			}
			return s.Flush()
		},
		"Close": func(s *stream, b *[]byte) error {
			if blocked, err := s.TryWrite(b); !blocked || err != nil {
				t.Errorf("blocked %t, %v", blocked, err)
			}
			if s.Close(true); s.last {
				return os.ErrDeadlineExceeded
			}
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = errors.Join(syscall.Close(fds[0]), syscall.Close(fds[1])) }()
			near, far := net.Pipe()
			defer far.Close()
			socket := wire.NewSocket(&reluctant{Conn: near, fds: fds})
			server := tls.Server(socket, &tls.Config{Certificates: certificates, SessionTicketsDisabled: true})
			client, shaken := tls.Client(far, &tls.Config{InsecureSkipVerify: true}), make(chan error, 1)
			go func() { shaken <- client.Handshake() }()
			if err := errors.Join(server.Handshake(), <-shaken); err != nil {
				t.Fatal(err)
			}
			s := newStream(server, socket, func() {})
			b, began := make([]byte, wire.Headroom+size), time.Now()
			if err := write(s, &b); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > 40*time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			_ = near.Close()
		})
	}
}
