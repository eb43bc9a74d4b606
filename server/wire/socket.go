package wire

import (
	"net"
	"sync/atomic"
	"time"
)

// WriteTimeout is the time without progress after which a slow client is disconnected.
const WriteTimeout = 30 * time.Second

// Listener accepts plain connections as Sockets.
type Listener struct{ net.Listener }

// Accept waits for a connection.
func (l Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return NewSocket(c), nil
}

// Socket is a connection below TLS. Package tls writes each record separately. A Socket buffers full
// records, because another one follows.
type Socket struct {
	net.Conn
	coalescer coalescer
	corked    atomic.Int32          // responses that are written without a pause
	queue     atomic.Pointer[Queue] // for all writes; nil: they are coalesced

	serverDeadline atomic.Bool  // package net/http or a handler has set a write deadline
	deadlineSet    atomic.Int64 // Unix nanoseconds: when send has set one; 0: it has not
}

// NewSocket makes a Socket of a connection.
func NewSocket(c net.Conn) *Socket {
	s := &Socket{Conn: c}
	s.coalescer.out = s.send
	return s
}

// UseQueue flushes the buffered bytes. From now on writes go through a queue, until LeaveQueue.
func (s *Socket) UseQueue() (*Queue, error) {
	q := newQueue(s.Conn)
	s.coalescer.mu.Lock()
	defer s.coalescer.mu.Unlock()
	s.queue.Store(q)
	return q, s.coalescer.flush()
}

// LeaveQueue ends the use of the queue, which must be empty.
func (s *Socket) LeaveQueue() { s.queue.Store(nil) }

// send writes to the connection, with a deadline for a client that reads nothing.
func (s *Socket) send(p []byte) (int, error) {
	if now := time.Now(); !s.serverDeadline.Load() && now.UnixNano()-s.deadlineSet.Load() > int64(WriteTimeout/4) {
		s.deadlineSet.Store(now.UnixNano())
		_ = s.Conn.SetWriteDeadline(now.Add(WriteTimeout)) // a closed connection fails below
	}
	return s.Conn.Write(p)
}

// SetWriteDeadline is called by package net/http and by handlers. Their deadlines replace those of send,
// also during a write.
func (s *Socket) SetWriteDeadline(t time.Time) error {
	s.serverDeadline.Store(!t.IsZero())
	s.deadlineSet.Store(0)
	return s.Conn.SetWriteDeadline(t)
}

// SetDeadline is called by package net/http when a connection is hijacked; send then sets no deadlines.
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

// AddWriter implements Conn: HTTP/1.1 has one request at a time.
func (s *Socket) AddWriter() {}

// RemoveWriter implements Conn.
func (s *Socket) RemoveWriter() {}

// ID implements Conn.
func (s *Socket) ID() uint64 { return 0 }

// MayBlock implements Conn. Each write has a deadline.
func (s *Socket) MayBlock(int64) bool { return false }
