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

// chunked is the connection of an answer in chunks, over HTTP/1.1.
type chunked struct {
	tls    *tls.Conn
	below  *records
	sluice *sluice
	gone   context.CancelFunc // called when the client has gone

	mu    sync.Mutex
	woken bool
	ended bool // Wake does nothing any more
	last  bool // nothing else can be asked by this connection; for its goroutine only
	early [16]byte
}

// newChunked takes over a connection of a Listener.
func newChunked(t *tls.Conn, gone context.CancelFunc) *chunked {
	below := t.NetConn().(*records)
	s := &chunked{tls: t, below: below, sluice: newSluice(below.Conn, false), gone: gone}
	s.last = below.over(s.sluice) != nil
	return s
}

// chunkTail ends a chunk, and its length.
const chunkTail = "\r\n"

// chunk makes a chunk of what stands in b behind Headroom. b may grow.
func chunk(b *[]byte) []byte {
	var digits [Headroom]byte
	head := append(strconv.AppendUint(digits[:0], uint64(len(*b)-Headroom), 16), chunkTail...)
	from := Headroom - len(head)
	copy((*b)[from:], head)
	*b = append(*b, chunkTail...)
	return (*b)[from:]
}

func (s *chunked) TryWrite(b *[]byte) (stuck bool, err error) {
	s.sluice.eager.Store(true)
	_, err = s.tls.Write(chunk(b))
	s.sluice.eager.Store(false)
	return s.sluice.stuck(), err
}

func (s *chunked) Write(b *[]byte) error {
	_, err := s.tls.Write(chunk(b))
	return err
}

func (s *chunked) Flush() error { return s.sluice.settle() }

func (s *chunked) Close(complete bool) {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	if complete {
		_, _ = s.tls.Write([]byte("0" + chunkTail + chunkTail)) // settle says it again
	}
	s.last = s.last || !complete || s.sluice.settle() != nil
	if !s.last {
		s.below.sluice.Store(nil) // else nothing may be written any more
	}
}

// reusable says, after End, whether the connection can serve other requests.
func (s *chunked) reusable() bool { return !s.last && s.below.Conn.SetDeadline(time.Time{}) == nil }

func (s *chunked) Wait(until time.Time) error {
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

func (s *chunked) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.woken && !s.ended {
		s.woken = true
		_ = s.below.Conn.SetReadDeadline(time.Unix(1, 0)) // it has passed
	}
}
