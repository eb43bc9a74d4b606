package conns

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// clientPatience is how long a client may take nothing of what is sent before its
// connection is given up.
const clientPatience = 30 * time.Second

// sendQueue writes to a connection without blocking, as far as the kernel has room, and
// keeps the rest, in order, until somebody waits for it to be written.
type sendQueue struct {
	conn       net.Conn
	raw        syscall.RawConn // nil: the system or the connection can only block
	noWait     atomic.Bool     // write does not wait for what it keeps
	background bool            // a goroutine writes what is kept; no caller of write waits
	writer     sync.WaitGroup  // that goroutine

	mu        sync.Mutex
	attempt   func(fd uintptr) // q.try, made once
	todo      []byte           // what attempt is to write; then what it has left
	kept      *[]byte          // nil: nothing is kept
	written   int              // bytes of kept that were written
	gathering bool             // everything is kept until release is called
	behind    bool             // something was kept before that began
	taken     chan struct{}    // not nil: closed when nothing is kept any more
	draining  bool             // the goroutine runs
	joined    bool             // it is not started any more
	err       error
}

func newSendQueue(c net.Conn, background bool) *sendQueue {
	q := &sendQueue{conn: c, background: background}
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

// write takes bytes. It waits until they are written, unless noWait is set or a
// goroutine does that.
func (q *sendQueue) write(p []byte) (int, error) {
	kept, err := q.add(p)
	switch {
	case err != nil || !kept:
	case q.background:
		q.startWriter()
	case !q.noWait.Load():
		err = q.flush()
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// add writes what can be written now, and keeps the rest. kept says that something has
// to be written later.
func (q *sendQueue) add(p []byte) (kept bool, err error) {
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

// gather makes write keep everything, for release to write at once.
func (q *sendQueue) gather() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gathering, q.behind = true, q.kept != nil
}

// release writes what was gathered. If the client is slow it waits, or has the goroutine
// go on where wait is not set.
func (q *sendQueue) release(wait bool) error {
	kept, err := q.endGathering()
	switch {
	case err != nil || !kept:
		return err
	case wait:
		return q.flush()
	}
	q.startWriter()
	return nil
}

func (q *sendQueue) endGathering() (kept bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gathering = false
	if q.kept != nil && q.err == nil {
		q.writeKept()
	}
	q.shrink()
	return q.kept != nil, q.err
}

// blocked says that the client does not take what was sent.
func (q *sendQueue) blocked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept != nil && (!q.gathering || q.behind)
}

// broken says that nothing can be written any more.
func (q *sendQueue) broken() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err != nil
}

// startWriter starts the goroutine that waits for the client, unless it runs. It ends
// when nothing is kept any more, after clientPatience, or with the connection; join
// waits for it.
func (q *sendQueue) startWriter() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.draining || q.gathering || q.joined {
		return // release looks again, or nothing can be written any more
	}
	q.draining = true
	q.writer.Go(func() {
		for again := true; again; {
			err := q.flush()
			again = q.stillDraining(err)
		}
	})
}

func (q *sendQueue) stillDraining(err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.draining = err == nil && q.kept != nil && !q.gathering
	return q.draining
}

// join waits for the goroutine of a connection that has been closed.
func (q *sendQueue) join() {
	q.mu.Lock()
	q.joined = true
	q.mu.Unlock()
	q.writer.Wait()
}

// flush waits until nothing is kept, and gives up a client that takes nothing.
func (q *sendQueue) flush() error {
	for {
		if done, err := q.flushed(); done || err != nil {
			return err
		}
		_ = q.conn.SetWriteDeadline(time.Now().Add(clientPatience)) // a closed connection says so below
		if err := q.raw.Write(q.writeSome); err != nil {
			q.fail(err)
			if q.background {
				_ = q.conn.Close() // so that whoever reads from it finds out
			}
		}
	}
}

// awaitTaken waits until nothing is kept, or until done. The goroutine writes meanwhile.
func (q *sendQueue) awaitTaken(done <-chan struct{}) error {
	taken, err := q.whenTaken()
	if taken == nil || err != nil {
		return err
	}
	q.startWriter()
	select {
	case <-taken:
	case <-done:
		return context.Canceled
	}
	_, err = q.whenTaken()
	return err
}

// whenTaken is closed when nothing is kept any more; nil says that nothing is.
func (q *sendQueue) whenTaken() (<-chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kept == nil || q.gathering && !q.behind {
		return nil, q.err
	}
	if q.taken == nil {
		q.taken = make(chan struct{})
	}
	return q.taken, q.err
}

// flushed says whether nothing is kept. Where only a blocking write is possible, it does
// that first.
func (q *sendQueue) flushed() (done bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.raw == nil {
		q.writeBlocking()
	}
	return q.kept == nil, q.err
}

func (q *sendQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.drop()
}

// writeSome writes a part of what is kept. It says whether it has got anywhere: if not,
// the caller waits until the descriptor can be written.
func (q *sendQueue) writeSome(fd uintptr) bool {
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
func (q *sendQueue) writeKept() {
	if q.todo = (*q.kept)[q.written:]; q.raw != nil {
		q.control()
	}
	q.noteLeft()
}

// noteLeft notes that todo is what is left of kept, and gives memory back that is of no
// use any more.
func (q *sendQueue) noteLeft() {
	q.written = len(*q.kept) - len(q.todo)
	q.todo = nil
	if q.err != nil || q.written == len(*q.kept) {
		q.drop()
	}
}

// writeNow writes what the kernel has room for, and returns what is left.
func (q *sendQueue) writeNow(p []byte) []byte {
	if q.raw == nil {
		return p
	}
	q.todo = p
	q.control()
	p, q.todo = q.todo, nil
	return p
}

func (q *sendQueue) control() {
	if err := q.raw.Control(q.attempt); err != nil && q.err == nil {
		q.err = err
	}
}

// try is called with the connection's descriptor.
func (q *sendQueue) try(fd uintptr) {
	n, err := tryWrite(fd, q.todo)
	q.todo = q.todo[n:]
	if err != nil {
		q.err = err
	}
}

// writeBlocking writes what is kept where nothing can be written without blocking.
func (q *sendQueue) writeBlocking() {
	if q.kept == nil || q.err != nil {
		return
	}
	_ = q.conn.SetWriteDeadline(time.Now().Add(clientPatience)) // a closed connection says so below
	_, q.err = q.conn.Write((*q.kept)[q.written:])
	q.drop()
}

func (q *sendQueue) keep(p []byte) {
	if q.kept == nil {
		if q.kept, q.written = new([]byte), 0; q.gathering {
			q.kept = buffers.Get().(*[]byte)
		}
	}
	*q.kept = append(*q.kept, p...)
}

// shrink moves what a slow client does not take into as little memory as it needs.
func (q *sendQueue) shrink() {
	if q.kept != nil && cap(*q.kept) >= bufferSize {
		small := bytes.Clone((*q.kept)[q.written:])
		q.giveBack()
		q.kept = &small
	}
}

// drop keeps nothing any more.
func (q *sendQueue) drop() {
	if q.kept == nil {
		return
	}
	q.giveBack()
	if q.behind = false; q.taken != nil {
		close(q.taken)
		q.taken = nil
	}
}

func (q *sendQueue) giveBack() {
	if n := cap(*q.kept); n >= bufferSize && n <= 2*bufferSize {
		*q.kept = (*q.kept)[:0]
		buffers.Put(q.kept)
	}
	q.kept, q.written = nil, 0
}
