package wire

import (
	"cmp"
	"net"
	"sync/atomic"
	"time"
)

// Patience is how long a client may take nothing of what is sent before its connection is
// given up.
const Patience = 30 * time.Second

// Listener accepts plain connections as Sockets.
type Listener struct {
	net.Listener
	Delay time.Duration // how long bytes wait for more at most; default a millisecond
}

// Accept waits for a connection.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return NewSocket(c, l.Delay), nil
}

// Socket is a connection below TLS. Package tls writes each record of 16 KB by itself. A full
// record is collected here, because its message goes on in another.
type Socket struct {
	net.Conn
	coalescer coalescer
	corked    atomic.Int32          // answers under way that are written without a pause
	queue     atomic.Pointer[Queue] // takes all writes once it is set

	serverDeadline atomic.Bool  // package net/http, or a handler, sets deadlines of writes
	deadlineSet    atomic.Int64 // when one was last set here, in nanoseconds; 0: not yet
}

// NewSocket makes one. Bytes wait for more for no longer than delay, or a millisecond.
func NewSocket(c net.Conn, delay time.Duration) *Socket {
	s := &Socket{Conn: c}
	s.coalescer.out, s.coalescer.limit = s.send, cmp.Or(delay, bufferFor)
	return s
}

// UseQueue writes what was collected, and sends all that follows through a queue, until
// LeaveQueue is called.
func (s *Socket) UseQueue() (*Queue, error) {
	q := newQueue(s.Conn)
	s.coalescer.mu.Lock()
	defer s.coalescer.mu.Unlock()
	s.queue.Store(q)
	return q, s.coalescer.flush()
}

// LeaveQueue ends that. Nothing may be kept in the queue.
func (s *Socket) LeaveQueue() { s.queue.Store(nil) }

// send writes to the connection, with a deadline that gives up a client that takes
// nothing.
func (s *Socket) send(p []byte) (int, error) {
	if now := time.Now(); !s.serverDeadline.Load() && now.UnixNano()-s.deadlineSet.Load() > int64(Patience/4) {
		s.deadlineSet.Store(now.UnixNano())
		_ = s.Conn.SetWriteDeadline(now.Add(Patience)) // a closed connection says so below
	}
	return s.Conn.Write(p)
}

// SetWriteDeadline is called by package net/http and by handlers, whose deadlines come
// before those of send. A write may be under way.
func (s *Socket) SetWriteDeadline(t time.Time) error {
	s.serverDeadline.Store(!t.IsZero())
	s.deadlineSet.Store(0)
	return s.Conn.SetWriteDeadline(t)
}

// SetDeadline is called by package net/http when a connection is hijacked. Whoever took
// it over may let it rest for as long as they like.
func (s *Socket) SetDeadline(t time.Time) error {
	s.serverDeadline.Store(true)
	return s.Conn.SetDeadline(t)
}

// Write is given one TLS record, or several.
func (s *Socket) Write(p []byte) (int, error) {
	if q := s.queue.Load(); q != nil {
		return q.write(p)
	}
	return s.coalescer.write(p, len(p) > recordSize || s.corked.Load() > 0)
}

// Cork implements Conn.
func (s *Socket) Cork() { s.corked.Add(1) }

// Uncork implements Conn.
func (s *Socket) Uncork() {
	s.corked.Add(-1)
	s.coalescer.expire()
}

// AddWriter implements Conn. Over HTTP/1.1 requests come one after another.
func (s *Socket) AddWriter() {}

// RemoveWriter implements Conn.
func (s *Socket) RemoveWriter() {}

// ID implements Conn.
func (s *Socket) ID() uint64 { return 0 }

// MayBlock implements Conn. Each write has a deadline.
func (s *Socket) MayBlock(int64) bool { return false }
