package conns

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// largestFrame is the payload that every client takes (RFC 9113, 4.2).
const largestFrame = 16 << 10

// frameQueue keeps data frames that are to go out between those of package http2.
type frameQueue struct {
	mu    sync.Mutex
	bytes *[]byte // nil while there are none
	size  atomic.Int64
}

// add adds the data frames of a part of a stream's body.
func (q *frameQueue) add(id uint32, p []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes == nil {
		q.bytes = buffers.Get().(*[]byte)
	}
	out := *q.bytes
	for len(p) > 0 {
		n := min(len(p), largestFrame)
		out = append(out, byte(n>>16), byte(n>>8), byte(n), dataFrame, 0)
		out = binary.BigEndian.AppendUint32(out, id)
		out = append(out, p[:n]...)
		p = p[n:]
	}
	*q.bytes = out
	q.size.Store(int64(len(out)))
}

// take returns the frames, or nil. They are given back with putFrames.
func (q *frameQueue) take() *[]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.bytes
	q.bytes = nil
	q.size.Store(0)
	return p
}

// putFrames gives the memory of what take returned back.
func putFrames(p *[]byte) {
	if cap(*p) <= 2*bufferSize {
		*p = (*p)[:0]
		buffers.Put(p)
	}
}
