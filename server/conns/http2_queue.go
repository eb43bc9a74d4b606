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
	q.append(func(out []byte) []byte { return appendData(out, id, p, false) })
}

// append adds whole frames.
func (q *frameQueue) append(frames func([]byte) []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes == nil {
		q.bytes = buffers.Get().(*[]byte)
	}
	*q.bytes = frames(*q.bytes)
	q.size.Store(int64(len(*q.bytes)))
}

// appendData makes data frames of a part of a body. The last one ends the stream where last
// is set.
func appendData(out []byte, id uint32, p []byte, last bool) []byte {
	for {
		n := min(len(p), largestFrame)
		flags := byte(0)
		if last && n == len(p) {
			flags = endStream
		}
		if n > 0 || last {
			out = append(out, byte(n>>16), byte(n>>8), byte(n), dataFrame, flags)
			out = binary.BigEndian.AppendUint32(out, id)
			out = append(out, p[:n]...)
		}
		if p = p[n:]; len(p) == 0 {
			return out
		}
	}
}

// addAnswer adds a block of headers, if there is one, and a part of a body.
func (q *frameQueue) addAnswer(id uint32, block, body []byte, last bool) {
	q.append(func(out []byte) []byte {
		if len(block) > 0 {
			var flags byte
			if last && len(body) == 0 {
				flags = endStream
			}
			if out = appendHeaders(out, id, block, flags, largestFrame); len(body) == 0 {
				return out
			}
		}
		return appendData(out, id, body, last)
	})
}

// addNumber adds a frame that says nothing but a number: more of a window, or why a stream ends.
func (q *frameQueue) addNumber(kind byte, id, n uint32) {
	q.append(func(out []byte) []byte {
		out = append(out, 0, 0, 4, kind, 0)
		out = binary.BigEndian.AppendUint32(out, id)
		return binary.BigEndian.AppendUint32(out, n)
	})
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
