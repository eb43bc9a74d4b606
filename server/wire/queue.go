package wire

import (
	"bytes"
	"net"
	"sync"
	"syscall"
	"time"
)

// Queue writes to a connection as much as the kernel accepts without blocking, and keeps the rest, in
// order, for Flush.
type Queue struct {
	conn net.Conn
	raw  syscall.RawConn // nil: writes block

	mu        sync.Mutex
	attempt   func(fd uintptr) // q.try, allocated once
	todo      []byte           // what attempt is to write; afterwards the rest
	kept      *[]byte          // nil: nothing
	written   int              // bytes of kept
	gathering bool             // everything is kept until Uncork
	err       error
}

func newQueue(c net.Conn) *Queue {
	q := &Queue{conn: c}
	q.attempt, q.raw = q.try, rawConn(c)
	return q
}

// rawConn returns nil if writes to the connection block.
func rawConn(c net.Conn) syscall.RawConn {
	if sc, ok := c.(syscall.Conn); ok && canTryWrite {
		if raw, err := sc.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// write writes as many bytes as the kernel accepts, and keeps the rest.
func (q *Queue) write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(p)
	if q.err == nil && q.kept == nil && !q.gathering {
		p = q.writeNow(p)
	}
	if q.err != nil {
		return 0, q.err
	}
	if len(p) > 0 {
		q.keep(p)
	}
	return n, nil
}

// NonBlocking reports whether writes do not block.
func (q *Queue) NonBlocking() bool { return q.raw != nil }

// Cork keeps everything that is written until Uncork writes it at once.
func (q *Queue) Cork() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gathering = true
}

// Uncork writes the gathered bytes, as many as the kernel accepts. kept means that Flush must write the
// rest.
func (q *Queue) Uncork() (kept bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gathering = false
	if q.kept != nil && q.err == nil {
		if q.raw == nil {
			q.writeBlocking()
		} else {
			q.writeKept()
		}
	}
	q.shrink()
	return q.kept != nil, q.err
}

// Blocked reports whether the kernel does not accept more.
func (q *Queue) Blocked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept != nil && !q.gathering
}

// Flush waits until nothing is kept, or fails if the client reads nothing for WriteTimeout.
func (q *Queue) Flush() error { return q.flush(time.Time{}) }

// FlushSoon is Flush, but fails if the client does not read everything within WriteTimeout.
func (q *Queue) FlushSoon() error { return q.flush(time.Now().Add(WriteTimeout)) }

// flush waits until nothing is kept, but not longer than by a time, if it is not zero.
func (q *Queue) flush(by time.Time) error {
	for {
		if done, err := q.flushed(); done || err != nil {
			return err
		}
		until := by
		if until.IsZero() {
			until = time.Now().Add(WriteTimeout)
		}
		_ = q.conn.SetWriteDeadline(until) // a closed connection fails below
		if err := q.raw.Write(q.writeSome); err != nil {
			q.fail(err)
		}
	}
}

// flushed reports whether nothing is kept. If writes block, it writes first.
func (q *Queue) flushed() (done bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.raw == nil {
		q.writeBlocking()
	}
	return q.kept == nil, q.err
}

func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.drop()
}

// writeSome writes a part of the kept bytes. It returns false if the caller has to wait until the
// descriptor is writable.
func (q *Queue) writeSome(fd uintptr) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kept == nil || q.err != nil {
		return true
	}
	before := q.written
	q.todo = (*q.kept)[q.written:]
	q.try(fd)
	q.noteLeft()
	return q.kept == nil || q.written > before
}

// writeKept writes as much of kept as the kernel accepts. The caller holds q.mu, here and below.
func (q *Queue) writeKept() {
	q.todo = (*q.kept)[q.written:]
	q.control()
	q.noteLeft()
}

// noteLeft is called when todo is the rest of kept.
func (q *Queue) noteLeft() {
	q.written = len(*q.kept) - len(q.todo)
	q.todo = nil
	if q.err != nil || q.written == len(*q.kept) {
		q.drop()
	}
}

// writeNow writes what the kernel accepts, and returns the rest.
func (q *Queue) writeNow(p []byte) []byte {
	if q.raw == nil {
		return p
	}
	q.todo = p
	q.control()
	p, q.todo = q.todo, nil
	return p
}

func (q *Queue) control() {
	if err := q.raw.Control(q.attempt); err != nil && q.err == nil {
		q.err = err
	}
}

// try is called with the connection's descriptor.
func (q *Queue) try(fd uintptr) {
	n, err := tryWrite(fd, q.todo)
	q.todo = q.todo[n:]
	if err != nil {
		q.err = err
	}
}

// writeBlocking writes the kept bytes if writes block.
func (q *Queue) writeBlocking() {
	if q.kept == nil || q.err != nil {
		return
	}
	_ = q.conn.SetWriteDeadline(time.Now().Add(WriteTimeout)) // a closed connection fails below
	_, q.err = q.conn.Write((*q.kept)[q.written:])
	q.drop()
}

func (q *Queue) keep(p []byte) {
	if q.kept == nil {
		if q.kept, q.written = new([]byte), 0; q.gathering {
			q.kept = GetBuffer()
		}
	}
	*q.kept = append(*q.kept, p...)
}

// shrink copies what a slow client has not read into a buffer of its size.
func (q *Queue) shrink() {
	if q.kept != nil && cap(*q.kept) >= bufferSize {
		small := bytes.Clone((*q.kept)[q.written:])
		q.drop()
		q.kept = &small
	}
}

// drop discards the kept bytes.
func (q *Queue) drop() {
	if q.kept != nil {
		PutBuffer(q.kept)
		q.kept, q.written = nil, 0
	}
}
