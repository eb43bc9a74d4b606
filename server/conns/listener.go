package conns

import (
	"cmp"
	"net"
	"sync/atomic"
	"time"
)

// Listener accepts plain connections that join the TLS records written to them.
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
	return newRecordConn(c, l.Delay), nil
}

// recordConn is a connection below TLS. Package tls writes each record of 16 KB by
// itself. A full record is buffered here, because its message goes on in another.
type recordConn struct {
	net.Conn
	coalescer coalescer
	corked    atomic.Int32              // answers under way that are written without a pause
	queue     atomic.Pointer[sendQueue] // takes all writes once it is set
	limited   bool                      // Read does not wait, and reads so often; both of who reads
	reads     int

	serverDeadline atomic.Bool  // package net/http, or a handler, sets deadlines of writes
	deadlineSet    atomic.Int64 // when one was last set here, in nanoseconds; 0: not yet
}

func newRecordConn(c net.Conn, delay time.Duration) *recordConn {
	r := &recordConn{Conn: c}
	r.coalescer.out, r.coalescer.limit = r.send, cmp.Or(delay, bufferFor)
	return r
}

// useQueue writes what is buffered, and sends all that follows through a queue.
func (r *recordConn) useQueue(q *sendQueue) error {
	r.coalescer.mu.Lock()
	defer r.coalescer.mu.Unlock()
	r.queue.Store(q)
	return r.coalescer.flush()
}

// send writes to the connection, with a deadline that gives up a client that takes
// nothing.
func (r *recordConn) send(p []byte) (int, error) {
	if now := time.Now(); !r.serverDeadline.Load() && now.UnixNano()-r.deadlineSet.Load() > int64(clientPatience/4) {
		r.deadlineSet.Store(now.UnixNano())
		_ = r.Conn.SetWriteDeadline(now.Add(clientPatience)) // a closed connection says so below
	}
	return r.Conn.Write(p)
}

// SetWriteDeadline is called by package net/http and by handlers, whose deadlines come
// before those of send. A write may be under way.
func (r *recordConn) SetWriteDeadline(t time.Time) error {
	r.serverDeadline.Store(!t.IsZero())
	r.deadlineSet.Store(0)
	return r.Conn.SetWriteDeadline(t)
}

// SetDeadline is called by package net/http when a connection is hijacked. Whoever took
// it over may let it rest for as long as they like.
func (r *recordConn) SetDeadline(t time.Time) error {
	r.serverDeadline.Store(true)
	return r.Conn.SetDeadline(t)
}

// Write is given one TLS record, or several.
func (r *recordConn) Write(p []byte) (int, error) {
	if q := r.queue.Load(); q != nil {
		return q.write(p)
	}
	return r.coalescer.write(p, len(p) > recordSize || r.corked.Load() > 0)
}

// Cork implements Conn.
func (r *recordConn) Cork() { r.corked.Add(1) }

// Uncork implements Conn.
func (r *recordConn) Uncork() {
	r.corked.Add(-1)
	r.coalescer.expire()
}

// AddWriter implements Conn. Over HTTP/1.1 requests come one after another.
func (r *recordConn) AddWriter() {}

// RemoveWriter implements Conn.
func (r *recordConn) RemoveWriter() {}

// ID implements Conn.
func (r *recordConn) ID() uint64 { return 0 }

// MayBlock implements Conn. Each write has a deadline.
func (r *recordConn) MayBlock(int64) bool { return false }
