package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sys/unix"

	"github.com/rowlock/rowlock/e2e/harness"
)

// taps are connections with watches that one thread reads. This takes a third of the processor time of a goroutine
// for each connection, and leaves the rest to the server.
type taps struct {
	poll int
	all  []*tap
}

// tapAgent is a User-Agent of typical length.
const tapAgent = "bench/v1.32.0 (linux/amd64) kubernetes/70d3cc9"

// tap is one connection.
type tap struct {
	socket socket
	tls    *tls.Conn
	rest   []byte // the beginning of an incomplete timestamp
}

// openTaps opens watches of a path, so many on each connection: over HTTP/2 if more than one.
func openTaps(s *harness.Server, path string, watches, perConn int, h2 bool) (*taps, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	t := &taps{poll: poll}
	for n := 0; n < watches; n += perConn {
		c, err := dialTap(s, h2)
		if err != nil {
			t.close()
			return nil, err
		}
		t.all = append(t.all, c)
		begin := c.beginHTTP1
		if h2 {
			begin = c.beginHTTP2
		}
		if err := errors.Join(begin(s, path, min(perConn, watches-n)), c.join(poll, len(t.all)-1)); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

func dialTap(s *harness.Server, h2 bool) (*tap, error) {
	pool, err := s.CA()
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	t := &tap{socket: socket{fd: fd}}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: s.Port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		_ = unix.Close(fd) // the other error matters more
		return nil, err
	}
	cfg := &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"}
	if h2 {
		cfg.NextProtos = []string{http2.NextProtoTLS}
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil { // as every client does
		_ = unix.Close(fd)
		return nil, err
	}
	t.tls = tls.Client(&t.socket, cfg)
	if err := t.tls.Handshake(); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return t, nil
}

// beginHTTP1 sends the request and waits for the headers of the answer.
func (t *tap) beginHTTP1(s *harness.Server, path string, _ int) error {
	if _, err := fmt.Fprintf(t.tls, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nUser-Agent: %s\r\n\r\n", path, strings.TrimPrefix(s.URL, "https://"), harness.AdminToken, tapAgent); err != nil {
		return err
	}
	head := make([]byte, 4096)
	n, err := t.tls.Read(head)
	if err == nil && !bytes.HasPrefix(head[:n], []byte("HTTP/1.1 200 ")) {
		err = fmt.Errorf("watch: %q", head[:n])
	}
	return err
}

// beginHTTP2 opens streams with windows large enough for the whole run, and waits for the headers of all answers.
func (t *tap) beginHTTP2(s *harness.Server, path string, streams int) error {
	const window = 1 << 30
	if _, err := io.WriteString(t.tls, http2.ClientPreface); err != nil {
		return err
	}
	f := http2.NewFramer(t.tls, t.tls)
	if err := errors.Join(f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}), f.WriteWindowUpdate(0, window)); err != nil {
		return err
	}
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for i := range streams {
		block.Reset()
		for _, h := range [][2]string{
			{":method", "GET"}, {":scheme", "https"}, {":authority", strings.TrimPrefix(s.URL, "https://")},
			{":path", path}, {"authorization", "Bearer " + harness.AdminToken}, {"user-agent", tapAgent}, {"accept", "application/json, */*"}, {"accept-encoding", "gzip"},
		} {
			if err := enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
				return err
			}
		}
		if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
			return err
		}
	}
	for heads := 0; heads < streams; {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if heads++; frame.StreamEnded() {
				err = errors.New("a watch ended at once")
			}
		case *http2.DataFrame, *http2.WindowUpdateFrame:
		default:
			err = fmt.Errorf("unexpected %v", frame)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// join adds the connection to the poll.
func (t *tap) join(poll, index int) error {
	t.socket.polled = true
	if err := unix.SetNonblock(t.socket.fd, true); err != nil {
		return err
	}
	return unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, t.socket.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(index)})
}

// read collects n deliveries, and returns their latencies. It returns early if nothing arrives for ten seconds.
func (t *taps) read(n int) (out []time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	buf := make([]byte, 64<<10)
	events := make([]unix.EpollEvent, 64)
	// Sleep a little: a reader that waits for each delivery costs the server a wake-up each time.
	nap := unix.NsecToTimespec(int64(200 * time.Microsecond))
	for len(out) < n {
		k, err := unix.EpollWait(t.poll, events, 10_000)
		if err == unix.EINTR {
			continue
		}
		if err != nil || k == 0 {
			return out, err
		}
		for _, e := range events[:k] {
			if out, err = t.all[e.Fd].take(out, buf); err != nil {
				return out, err
			}
		}
		if k < len(events) {
			_ = unix.Nanosleep(&nap, nil) // a shorter sleep is harmless
		}
	}
	return out, nil
}

// take reads the available data of a connection.
func (t *tap) take(out []time.Duration, buf []byte) ([]time.Duration, error) {
	for t.socket.calls = 0; ; {
		k := copy(buf, t.rest)
		n, err := t.tls.Read(buf[k:])
		out, t.rest = times(out, buf[:k+n], t.rest[:0])
		if errors.Is(err, errLater) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}

func (t *taps) close() {
	for _, c := range t.all {
		_ = c.tls.Close() // the server may have closed it
	}
	_ = unix.Close(t.poll)
}

// errLater means that no more data is available yet. It is temporary for package tls.
var errLater net.Error = later{}

type later struct{}

func (later) Error() string   { return "nothing to read now" }
func (later) Timeout() bool   { return true }
func (later) Temporary() bool { return true }

// socket is a net.Conn that bypasses Go's network poller.
type socket struct {
	fd     int
	polled bool
	calls  int // reads since the last poll
}

func (s *socket) Read(b []byte) (int, error) {
	if s.polled && s.calls > 0 {
		return 0, errLater // the next poll reports more data; this saves a read
	}
	s.calls++
	n, err := unix.Read(s.fd, b)
	switch {
	case err == unix.EAGAIN:
		return 0, errLater
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (s *socket) Write(b []byte) (int, error) {
	for done := 0; done < len(b); {
		n, err := unix.Write(s.fd, b[done:])
		if err != nil {
			return done, err
		}
		done += n
	}
	return len(b), nil
}

func (s *socket) Close() error                     { return unix.Close(s.fd) }
func (s *socket) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *socket) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *socket) SetDeadline(time.Time) error      { return nil }
func (s *socket) SetReadDeadline(time.Time) error  { return nil }
func (s *socket) SetWriteDeadline(time.Time) error { return nil }
