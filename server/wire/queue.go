package wire

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Queue writes to a connection without blocking, as far as the kernel has room, and keeps
// the rest, in order, until somebody waits for it to be written.
type Queue struct {
	conn   net.Conn
	raw    syscall.RawConn // nil: the system or the connection can only block
	NoWait atomic.Bool     // Write does not wait for what it keeps

	mu        sync.Mutex
	attempt   func(fd uintptr) // q.try, made once
	todo      []byte           // what attempt is to write; then what it has left
	kept      *[]byte          // nil: nothing is kept
	written   int              // bytes of kept that were written
	gathering bool             // everything is kept until Release is called
	err       error
}

func newQueue(c net.Conn) *Queue {
	q := &Queue{conn: c}
	q.attempt, q.raw = q.try, rawConn(c)
	return q
}

// rawConn is nil where the system, or the connection, can only block.
func rawConn(c net.Conn) syscall.RawConn {
	if sc, ok := c.(syscall.Conn); ok && canTryWrite {
		if raw, err := sc.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// write takes bytes. It waits until they are written, unless NoWait is set.
func (q *Queue) write(p []byte) (int, error) {
	kept, err := q.add(p)
	if err == nil && kept && !q.NoWait.Load() {
		err = q.Flush()
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// add writes what can be written now, and keeps the rest. kept says that something has
// to be written later.
func (q *Queue) add(p []byte) (kept bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil && q.kept == nil && !q.gathering {
		p = q.writeNow(p)
	}
	if q.err == nil && len(p) > 0 {
		q.keep(p)
	}
	return q.kept != nil && !q.gathering, q.err
}

// Tries says that the kernel can be given what it has room for; otherwise a write may block.
func (q *Queue) Tries() bool { return q.raw != nil }

// Gather has everything kept that is written, for Release to write at once.
func (q *Queue) Gather() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gathering = true
}

// Release writes what was gathered, as far as the kernel has room. kept says that the client
// has not taken all of it: Flush waits for that.
func (q *Queue) Release() (kept bool, err error) {
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

// Blocked says that the client does not take what was sent.
func (q *Queue) Blocked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept != nil && !q.gathering
}

// Flush waits until nothing is kept, and gives up a client that takes nothing.
func (q *Queue) Flush() error {
	for {
		if done, err := q.flushed(); done || err != nil {
			return err
		}
		_ = q.conn.SetWriteDeadline(time.Now().Add(Patience)) // a closed connection says so below
		if err := q.raw.Write(q.writeSome); err != nil {
			q.fail(err)
		}
	}
}

// flushed says whether nothing is kept. Where only a blocking write is possible, it does
// that first.
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

// writeSome writes a part of what is kept. It says whether it has got anywhere: if not,
// the caller waits until the descriptor can be written.
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

// writeKept writes what the kernel has room for of what is kept. The caller holds q.mu,
// as those of all methods below.
func (q *Queue) writeKept() {
	q.todo = (*q.kept)[q.written:]
	q.control()
	q.noteLeft()
}

// noteLeft notes that todo is what is left of kept, and gives memory back that is of no
// use any more.
func (q *Queue) noteLeft() {
	q.written = len(*q.kept) - len(q.todo)
	q.todo = nil
	if q.err != nil || q.written == len(*q.kept) {
		q.drop()
	}
}

// writeNow writes what the kernel has room for, and returns what is left.
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

// writeBlocking writes what is kept where nothing can be written without blocking.
func (q *Queue) writeBlocking() {
	if q.kept == nil || q.err != nil {
		return
	}
	_ = q.conn.SetWriteDeadline(time.Now().Add(Patience)) // a closed connection says so below
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

// shrink moves what a slow client does not take into as little memory as it needs.
func (q *Queue) shrink() {
	if q.kept != nil && cap(*q.kept) >= bufferSize {
		small := bytes.Clone((*q.kept)[q.written:])
		q.drop()
		q.kept = &small
	}
}

// drop keeps nothing any more.
func (q *Queue) drop() {
	if q.kept != nil {
		PutBuffer(q.kept)
		q.kept, q.written = nil, 0
	}
}
