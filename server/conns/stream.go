package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Stream is the connection of an answer in chunks that has left package net/http. What
// is written need not wait for the client: a goroutine that serves many clients can
// write to each. Writing is for one goroutine at a time, waiting for another.
type Stream struct {
	tls   *tls.Conn
	below *records
	gone  context.CancelFunc // called when the client has gone
	eager atomic.Bool        // what the kernel has no room for is kept

	raw     syscall.RawConn
	attempt func(fd uintptr) bool // tries to write todo; guarded, as all of these, by the mutex of below.hold
	todo    []byte
	rest    []byte // sealed, kept
	err     error

	mu    sync.Mutex
	woken bool
	ended bool // Wake does nothing any more
	last  bool // nothing else can be asked by this connection; for its goroutine only
	early [16]byte
}

// newStream takes over a connection of a Listener.
func newStream(t *tls.Conn, gone context.CancelFunc) *Stream {
	below := t.NetConn().(*records)
	s := &Stream{tls: t, below: below, gone: gone}
	s.attempt = s.try
	if sc, ok := below.Conn.(syscall.Conn); ok {
		s.raw, _ = sc.SyscallConn() // without, all writes wait
	}
	below.hold.mu.Lock()
	defer below.hold.mu.Unlock()
	s.err = below.hold.flush()
	below.stream = s
	return s
}

// chunkHead is the room for the length of a chunk, and chunkTail what ends it.
const (
	chunkHead = 10
	chunkTail = "\r\n"
)

// Room is what must be left free at the beginning of what is given to Offer and Write.
const Room = chunkHead

// chunk makes a chunk of what stands in b behind Room. b may grow.
func chunk(b *[]byte) []byte {
	var digits [chunkHead]byte
	head := append(strconv.AppendUint(digits[:0], uint64(len(*b)-Room), 16), chunkTail...)
	from := Room - len(head)
	copy((*b)[from:], head)
	*b = append(*b, chunkTail...)
	return (*b)[from:]
}

// Offer writes a chunk and does not wait. stuck says that the client is slow and that
// some of it has been kept: then Settle must be called, or Write.
func (s *Stream) Offer(b *[]byte) (stuck bool, err error) {
	s.eager.Store(true)
	_, err = s.tls.Write(chunk(b))
	s.eager.Store(false)
	s.below.hold.mu.Lock()
	defer s.below.hold.mu.Unlock()
	return len(s.rest) > 0, err
}

// Write writes a chunk, and waits while the client is slow; then it fails after patience.
func (s *Stream) Write(b *[]byte) error {
	_, err := s.tls.Write(chunk(b))
	return err
}

// Settle waits until all that Offer kept has been written.
func (s *Stream) Settle() error {
	s.below.hold.mu.Lock()
	defer s.below.hold.mu.Unlock()
	return s.settle()
}

// End ends the answer. complete says that the client is to know that it is whole.
func (s *Stream) End(complete bool) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	if complete {
		_, _ = s.tls.Write([]byte("0" + chunkTail + chunkTail)) // s.err
	}
	s.below.hold.mu.Lock()
	defer s.below.hold.mu.Unlock()
	s.last = s.last || !complete || s.settle() != nil
	if !s.last {
		s.below.stream = nil // else nothing may be written any more
	}
}

// reusable says, after End, whether the connection can serve other requests.
func (s *Stream) reusable() bool { return !s.last && s.below.Conn.SetDeadline(time.Time{}) == nil }

// Wait waits until a time, a call of Wake, or, with an error, until the client has gone.
// Whoever has called Wake will be looked after by what the caller does next.
func (s *Stream) Wait(until time.Time) error {
	for {
		s.mu.Lock()
		woken := s.woken
		if s.woken = false; !woken {
			_ = s.below.Conn.SetReadDeadline(until) // a closed connection says so below
		}
		s.mu.Unlock()
		if woken {
			return nil
		}
		_, err := s.tls.Read(s.early[:])
		switch {
		case err == nil:
			s.last = true // nobody will look at what came
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

// Wake ends Wait, or the next one. It may be called by anybody, and at any time.
func (s *Stream) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.woken && !s.ended {
		s.woken = true
		_ = s.below.Conn.SetReadDeadline(time.Unix(1, 0)) // it has passed
	}
}

// write takes sealed bytes. below.hold.mu is held, as for those that follow.
func (s *Stream) write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if len(s.rest) > 0 {
		s.rest = append(s.rest, p...)
	} else if left := s.now(p); len(left) > 0 {
		s.rest = append(s.rest, left...)
	}
	if !s.eager.Load() {
		_ = s.settle() // s.err
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// now writes what the kernel has room for, and returns the rest.
func (s *Stream) now(p []byte) []byte {
	if s.raw == nil {
		return p
	}
	s.todo = p
	if err := s.raw.Write(s.attempt); err != nil {
		s.err = err
	}
	p, s.todo = s.todo, nil
	return p
}

// try is called with the connection's descriptor, and says that there is no waiting.
func (s *Stream) try(fd uintptr) bool {
	n, err := writeNow(fd, s.todo)
	s.todo = s.todo[n:]
	if err != nil {
		s.err = err
	}
	return true
}

// settle waits until the rest is written.
func (s *Stream) settle() error {
	if len(s.rest) == 0 || s.err != nil {
		return s.err
	}
	// A closed connection says so below.
	_ = s.below.Conn.SetWriteDeadline(time.Now().Add(patience))
	_, s.err = s.below.Conn.Write(s.rest)
	_ = s.below.Conn.SetWriteDeadline(time.Time{})
	s.rest = nil
	return s.err
}
