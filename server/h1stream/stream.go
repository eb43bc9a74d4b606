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

// stream is a response in chunks over a hijacked connection.
type stream struct {
	tls    *tls.Conn
	socket *wire.Socket
	queue  *wire.Queue
	cancel context.CancelFunc // ends the request when the client has disconnected
	over   chan struct{}      // closed by Over

	mu      sync.Mutex
	stopped bool          // listen must return
	silent  chan struct{} // closed when listen has returned; nil: it was not called

	last  bool     // the connection can serve no further request; used by the writer, then by attend
	early [16]byte // what the client sends before the response has ended is read into this
}

func newStream(t *tls.Conn, socket *wire.Socket, cancel context.CancelFunc) *stream {
	s := &stream{tls: t, socket: socket, cancel: cancel, over: make(chan struct{})}
	var err error
	s.queue, err = socket.UseQueue()
	s.last = err != nil
	return s
}

// crlf ends a chunk, and its length.
const crlf = "\r\n"

// chunk makes a chunk of what follows Headroom in b. b may grow.
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
	_, err = s.tls.Write(chunk(b))
	return s.queue.Blocked(), err
}

// Write implements wire.Stream.
func (s *stream) Write(b *[]byte) error {
	if _, err := s.tls.Write(chunk(b)); err != nil {
		return err
	}
	return s.queue.FlushSoon()
}

// Flush implements wire.Stream.
func (s *stream) Flush() error { return s.queue.FlushSoon() }

// Close implements wire.Stream.
func (s *stream) Close(complete bool) {
	s.stopListening()
	if complete {
		_, _ = s.tls.Write([]byte("0" + crlf + crlf)) // FlushSoon returns the error again
	}
	s.last = s.last || !complete || s.queue.FlushSoon() != nil
	if !s.last {
		s.socket.LeaveQueue()
	}
}

// WhenEnded implements wire.Stream.
func (s *stream) WhenEnded(ctx context.Context, f func()) (stop func() bool) {
	return context.AfterFunc(ctx, f)
}

// Over implements wire.Stream.
func (s *stream) Over() { close(s.over) }

// reusable reports, after Over, whether the connection can serve further requests.
func (s *stream) reusable() bool {
	return !s.last && s.socket.Conn.SetDeadline(time.Time{}) == nil
}

// attend ends the request when the client disconnects, and returns after Over.
func (s *stream) attend() {
	early, lost := s.listen()
	if lost {
		s.cancel()
	}
	<-s.over
	s.last = s.last || early || lost
}

// earlyMax bounds the reads of early data that listen allows: it may be the client's next request.
// A client that sends more is disconnected.
const earlyMax = 4096

// listen reads until stopListening is called or the client has disconnected (lost). early means that
// the client has sent data, which is dropped.
func (s *stream) listen() (early, lost bool) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return false, false
	}
	s.silent = make(chan struct{})
	defer close(s.silent)
	s.mu.Unlock()
	for range earlyMax {
		err := s.socket.AwaitReadable()
		if err == nil {
			if err = s.readSome(); err == nil {
				early = true
			}
		}
		if err != nil {
			return early, !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	_ = s.socket.Conn.Close() // the writer gets an error
	return true, true
}

// readSome reads in another goroutine, whose stack grows; that of listen, which may wait for hours, stays
// small.
func (s *stream) readSome() error {
	read := make(chan error)
	go func() {
		_, err := s.tls.Read(s.early[:])
		read <- err
	}()
	return <-read
}

// stopListening ends listen: what the client sends after the end of the response is its next request.
func (s *stream) stopListening() {
	s.mu.Lock()
	s.stopped = true
	silent := s.silent
	s.mu.Unlock()
	if silent != nil {
		_ = s.socket.Conn.SetReadDeadline(time.Unix(1, 0)) // it has passed; on a closed connection the read fails anyway
		<-silent
	}
}

var _ wire.Stream = (*stream)(nil)
