package h1stream

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// stream is a hijacked connection over which an answer goes out in chunks.
type stream struct {
	tls    *tls.Conn
	socket *wire.Socket
	queue  *wire.Queue
	gone   context.CancelFunc // called when the client has gone
	over   chan struct{}      // closed by Over

	mu     sync.Mutex
	hushed bool          // hush was called
	quiet  chan struct{} // closed when listen has returned; nil: it was not called

	last  bool     // the connection can serve no further request; for whoever writes, then for attend
	early [16]byte // what a client sends before the answer has ended is read into this
}

func newStream(t *tls.Conn, socket *wire.Socket, gone context.CancelFunc) *stream {
	s := &stream{tls: t, socket: socket, gone: gone, over: make(chan struct{})}
	var err error
	s.queue, err = socket.UseQueue()
	s.last = err != nil
	return s
}

// crlf ends a chunk, and its length.
const crlf = "\r\n"

// chunk makes a chunk of what stands in b behind Headroom. b may grow.
func chunk(b *[]byte) []byte {
	var digits [wire.Headroom]byte
	head := append(strconv.AppendUint(digits[:0], uint64(len(*b)-wire.Headroom), 16), crlf...)
	from := wire.Headroom - len(head)
	copy((*b)[from:], head)
	*b = append(*b, crlf...)
	return (*b)[from:]
}

// TryWrite implements wire.Stream.
func (s *stream) TryWrite(b *[]byte) (blocked bool, err error) {
	s.queue.NoWait.Store(true)
	_, err = s.tls.Write(chunk(b))
	s.queue.NoWait.Store(false)
	return s.queue.Blocked(), err
}

// Write implements wire.Stream.
func (s *stream) Write(b *[]byte) error {
	_, err := s.tls.Write(chunk(b))
	return err
}

// Flush implements wire.Stream.
func (s *stream) Flush() error { return s.queue.Flush() }

// Close implements wire.Stream.
func (s *stream) Close(complete bool) {
	s.hush()
	if complete {
		_, _ = s.tls.Write([]byte("0" + crlf + crlf)) // Flush returns the error again
	}
	s.last = s.last || !complete || s.queue.Flush() != nil
	if !s.last {
		s.socket.LeaveQueue() // otherwise nothing may be written any more
	}
}

// WhenEnded implements wire.Stream.
func (s *stream) WhenEnded(ctx context.Context, f func()) (stop func() bool) {
	return context.AfterFunc(ctx, f)
}

// Over implements wire.Stream.
func (s *stream) Over() { close(s.over) }

// reusable says, when the answer is over, whether the connection can serve other requests.
func (s *stream) reusable() bool {
	return !s.last && s.socket.Conn.SetDeadline(time.Time{}) == nil
}

// attend notices the end of the client until the answer ends, and waits until it is over.
// What the client says meanwhile nobody will look at.
func (s *stream) attend() {
	spoke, lost := s.listen()
	if lost {
		s.gone()
	}
	<-s.over
	s.last = s.last || spoke || lost
}

// earlyMax is how often listen reads what a client sends early, which may be its next request. One
// that sends more is taken for gone.
const earlyMax = 4096

// listen reads until hush is called, or the client has gone.
func (s *stream) listen() (spoke, lost bool) {
	s.mu.Lock()
	if s.hushed {
		s.mu.Unlock()
		return false, false
	}
	s.quiet = make(chan struct{})
	defer close(s.quiet)
	s.mu.Unlock()
	for range earlyMax {
		err := s.socket.AwaitReadable()
		if err == nil {
			if err = s.readSome(); err == nil {
				spoke = true
			}
		}
		if err != nil {
			return spoke, !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	_ = s.socket.Conn.Close() // whoever writes is told
	return true, true
}

// readSome reads in a goroutine of its own, which needs some stack; the one that waits here,
// perhaps for hours, keeps what it has.
func (s *stream) readSome() error {
	read := make(chan error)
	go func() {
		_, err := s.tls.Read(s.early[:])
		read <- err
	}()
	return <-read
}

// hush stops listen: what the client sends when it has the end of the answer is its next
// request.
func (s *stream) hush() {
	s.mu.Lock()
	s.hushed = true
	quiet := s.quiet
	s.mu.Unlock()
	if quiet != nil {
		_ = s.socket.Conn.SetReadDeadline(time.Unix(1, 0)) // it has passed; a closed connection says so when it is read
		<-quiet
	}
}

var _ wire.Stream = (*stream)(nil)
