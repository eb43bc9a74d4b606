package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"
)

// http1Stream is a hijacked connection over which an answer goes out in chunks.
type http1Stream struct {
	tls   *tls.Conn
	below *recordConn
	queue *sendQueue
	gone  context.CancelFunc // called when the client has gone

	mu     sync.Mutex
	woken  bool
	closed bool          // Wake does nothing any more
	hushed bool          // hush was called
	quiet  chan struct{} // closed when listen has returned; nil: it was not called
	over   chan struct{} // closed by Over; nil: the answer does not go on without its handler

	last  bool     // the connection can serve no further request; used by the handler alone
	early [16]byte // what a client sends before the answer has ended is read into this
}

func newHTTP1Stream(t *tls.Conn, below *recordConn, gone context.CancelFunc) *http1Stream {
	s := &http1Stream{tls: t, below: below, queue: newSendQueue(below.Conn, false), gone: gone}
	s.last = below.useQueue(s.queue) != nil
	return s
}

// crlf ends a chunk, and its length.
const crlf = "\r\n"

// chunk makes a chunk of what stands in b behind Headroom. b may grow.
func chunk(b *[]byte) []byte {
	var digits [Headroom]byte
	head := append(strconv.AppendUint(digits[:0], uint64(len(*b)-Headroom), 16), crlf...)
	from := Headroom - len(head)
	copy((*b)[from:], head)
	*b = append(*b, crlf...)
	return (*b)[from:]
}

func (s *http1Stream) TryWrite(b *[]byte) (blocked bool, err error) {
	s.queue.noWait.Store(true)
	_, err = s.tls.Write(chunk(b))
	s.queue.noWait.Store(false)
	return s.queue.blocked(), err
}

func (s *http1Stream) Write(b *[]byte) error {
	_, err := s.tls.Write(chunk(b))
	return err
}

func (s *http1Stream) Flush() error { return s.queue.flush() }

func (s *http1Stream) Close(complete bool) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.over != nil {
		s.hush()
	}
	if complete {
		_, _ = s.tls.Write([]byte("0" + crlf + crlf)) // flush returns the error again
	}
	s.last = s.last || !complete || s.queue.flush() != nil
	if !s.last {
		s.below.queue.Store(nil) // otherwise nothing may be written any more
	}
}

// reusable says, after Close, whether the connection can serve other requests.
func (s *http1Stream) reusable() bool {
	return !s.last && s.below.Conn.SetDeadline(time.Time{}) == nil
}

// Wait reads, so that the end of the client is noticed. The time is a deadline of the
// read, and Wake sets one that has passed.
func (s *http1Stream) Wait(until time.Time) error {
	for {
		if s.beginWait(until) {
			return nil
		}
		_, err := s.tls.Read(s.early[:])
		switch {
		case err == nil:
			s.last = true // nobody will look at what the client has sent
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.mu.Lock()
			s.woken = false
			s.mu.Unlock()
			return nil
		default:
			s.last = true
			s.gone()
			return err
		}
	}
}

// beginWait sets the deadline, unless Wake has been called already.
func (s *http1Stream) beginWait(until time.Time) (woken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	woken = s.woken
	if s.woken = false; !woken {
		_ = s.below.Conn.SetReadDeadline(until) // a closed connection says so when it is read
	}
	return woken
}

// Outlive implements Stream. A goroutine of Hijacker then does nothing but read.
func (s *http1Stream) Outlive() bool {
	s.over = make(chan struct{})
	return true
}

// WhenEnded implements Stream.
func (s *http1Stream) WhenEnded(ctx context.Context, told func()) (stop func() bool) {
	return context.AfterFunc(ctx, told)
}

// Over implements Stream.
func (s *http1Stream) Over() { close(s.over) }

// attend notices the end of the client until the answer ends, and waits until it is over.
// What the client says meanwhile nobody will look at.
func (s *http1Stream) attend() {
	spoke, lost := s.listen()
	if lost {
		s.gone()
	}
	<-s.over
	s.last = s.last || spoke || lost
}

// listen reads until hush is called, or the client has gone.
func (s *http1Stream) listen() (spoke, lost bool) {
	s.mu.Lock()
	if s.hushed {
		s.mu.Unlock()
		return false, false
	}
	s.quiet = make(chan struct{})
	defer close(s.quiet)
	s.mu.Unlock()
	err := s.below.await(func() (bool, error) {
		for {
			if _, err := s.tls.Read(s.early[:]); err != nil {
				return false, err
			}
			spoke = true
		}
	})
	return spoke, !errors.Is(err, os.ErrDeadlineExceeded)
}

// hush stops listen: what the client sends when it has the end of the answer is its next
// request.
func (s *http1Stream) hush() {
	s.mu.Lock()
	s.hushed = true
	quiet := s.quiet
	s.mu.Unlock()
	if quiet != nil {
		_ = s.below.Conn.SetReadDeadline(time.Unix(1, 0)) // it has passed; a closed connection says so when it is read
		<-quiet
	}
}

func (s *http1Stream) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.woken && !s.closed {
		s.woken = true
		_ = s.below.Conn.SetReadDeadline(time.Unix(1, 0)) // it has passed
	}
}
