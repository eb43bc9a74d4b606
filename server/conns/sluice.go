package conns

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// patience is how long a client may take nothing of what is sent before its
// connection is given up.
const patience = 30 * time.Second

// sluice writes to a connection what the kernel has room for, and keeps the rest, in
// order, until somebody waits for it.
type sluice struct {
	conn  net.Conn
	raw   syscall.RawConn // nil: all writes wait
	eager atomic.Bool     // write does not wait
	alone bool            // nor does its caller later: a goroutine must

	mu      sync.Mutex
	attempt func(fd uintptr) // tries to write todo
	todo    []byte
	rest    *[]byte // nil: nothing is kept
	from    int     // of rest
	gathers bool    // rest grows until release
	settles bool    // somebody waits on behalf of all
	err     error
}

func newSluice(c net.Conn, alone bool) *sluice {
	s := &sluice{conn: c, alone: alone}
	s.attempt = s.try
	if sc, ok := c.(syscall.Conn); ok && writesNow {
		s.raw, _ = sc.SyscallConn() // without, all writes wait
	}
	return s
}

// write takes bytes, and waits until they are written, unless it is eager.
func (s *sluice) write(p []byte) (int, error) {
	s.mu.Lock()
	n := len(p)
	if s.err == nil && s.rest == nil && !s.gathers {
		p = s.now(p)
	}
	if s.err == nil && len(p) > 0 {
		s.keep(p)
	}
	err, wait := s.err, s.rest != nil && !s.gathers
	s.mu.Unlock()
	switch {
	case err != nil || !wait:
	case s.alone:
		s.later()
	case !s.eager.Load():
		err = s.settle()
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// gather makes write keep all that comes, for release to write at once.
func (s *sluice) gather() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathers = true
}

// release writes what was gathered. If it does not wait, and the client is slow, a
// goroutine does.
func (s *sluice) release(wait bool) error {
	s.mu.Lock()
	s.gathers = false
	if s.rest != nil && s.err == nil {
		s.push()
	}
	s.shrink()
	err, left := s.err, s.rest != nil
	s.mu.Unlock()
	switch {
	case err != nil || !left:
		return err
	case wait:
		return s.settle()
	}
	s.later()
	return nil
}

// stuck says that the client does not take what was sent.
func (s *sluice) stuck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rest != nil && !s.gathers
}

// broken says that nothing can be written any more.
func (s *sluice) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// later has a goroutine wait for the client. It ends with what is kept, with the
// client's time, or with the connection.
func (s *sluice) later() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settles || s.gathers {
		return // release looks again
	}
	s.settles = true
	go func() {
		for {
			err := s.settle()
			s.mu.Lock()
			s.settles = err == nil && s.rest != nil && !s.gathers
			again := s.settles
			s.mu.Unlock()
			if !again {
				return
			}
		}
	}()
}

// settle waits until nothing is kept, and gives up a client that takes nothing.
func (s *sluice) settle() error {
	for {
		s.mu.Lock()
		if s.raw == nil {
			s.block()
		}
		err, done := s.err, s.rest == nil
		s.mu.Unlock()
		if err != nil || done {
			return err
		}
		_ = s.conn.SetWriteDeadline(time.Now().Add(patience)) // a closed connection says so below
		if err := s.raw.Write(s.some); err != nil {
			s.mu.Lock()
			if s.err == nil {
				s.err = err
			}
			s.drop()
			s.mu.Unlock()
			if s.alone {
				_ = s.conn.Close() // who reads it shall know
			}
		}
	}
}

// some writes a part of what is kept, and says that there is no waiting for it any
// more.
func (s *sluice) some(fd uintptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest == nil || s.err != nil {
		return true
	}
	before := s.from
	s.todo = (*s.rest)[s.from:]
	s.try(fd)
	s.left()
	return s.rest == nil || s.from > before
}

// push writes what the kernel has room for of what is kept. s.mu is held, as for all
// that follow.
func (s *sluice) push() {
	if s.todo = (*s.rest)[s.from:]; s.raw != nil {
		s.control()
	}
	s.left()
}

// left notes that todo is left of what was kept, and gives the memory back of what is
// of no use any more.
func (s *sluice) left() {
	s.from = len(*s.rest) - len(s.todo)
	s.todo = nil
	if s.err != nil || s.from == len(*s.rest) {
		s.drop()
	}
}

// now writes what the kernel has room for, and returns what is left.
func (s *sluice) now(p []byte) []byte {
	if s.raw == nil {
		return p
	}
	s.todo = p
	s.control()
	p, s.todo = s.todo, nil
	return p
}

func (s *sluice) control() {
	if err := s.raw.Control(s.attempt); err != nil && s.err == nil {
		s.err = err
	}
}

// try is called with the connection's descriptor.
func (s *sluice) try(fd uintptr) {
	n, err := writeNow(fd, s.todo)
	s.todo = s.todo[n:]
	if err != nil {
		s.err = err
	}
}

// block writes what is kept where nothing can be written without waiting.
func (s *sluice) block() {
	if s.rest == nil || s.err != nil {
		return
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(patience)) // a closed connection says so below
	_, s.err = s.conn.Write((*s.rest)[s.from:])
	s.drop()
}

func (s *sluice) keep(p []byte) {
	if s.rest == nil {
		if s.rest, s.from = new([]byte), 0; s.gathers {
			s.rest = spaces.Get().(*[]byte)
		}
	}
	*s.rest = append(*s.rest, p...)
}

// shrink keeps what a slow client does not take in as little memory as that needs.
func (s *sluice) shrink() {
	if s.rest != nil && cap(*s.rest) >= spaceSize {
		small := bytes.Clone((*s.rest)[s.from:])
		s.drop()
		s.rest = &small
	}
}

func (s *sluice) drop() {
	if s.rest == nil {
		return
	}
	if n := cap(*s.rest); n >= spaceSize && n <= 2*spaceSize {
		*s.rest = (*s.rest)[:0]
		spaces.Put(s.rest)
	}
	s.rest, s.from = nil, 0
}
