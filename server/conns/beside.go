package conns

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// largestFrame is what every client takes (RFC 9113, 4.2).
const largestFrame = 16 << 10

// beside keeps frames that are to go out between those of package http2.
type beside struct {
	mu    sync.Mutex
	bytes *[]byte // nil while there are none
	size  atomic.Int64
}

// add adds the data frames of a part of a stream's body.
func (b *beside) add(id uint32, p []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes == nil {
		b.bytes = spaces.Get().(*[]byte)
	}
	out := *b.bytes
	for len(p) > 0 {
		n := min(len(p), largestFrame)
		out = append(out, byte(n>>16), byte(n>>8), byte(n), dataFrame, 0)
		out = binary.BigEndian.AppendUint32(out, id)
		out = append(out, p[:n]...)
		p = p[n:]
	}
	*b.bytes = out
	b.size.Store(int64(len(out)))
}

// take returns the frames, or nil, for done.
func (b *beside) take() *[]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.bytes
	b.bytes = nil
	b.size.Store(0)
	return p
}

// done gives back the memory of what take returned.
func done(p *[]byte) {
	if cap(*p) <= 2*spaceSize {
		*p = (*p)[:0]
		spaces.Put(p)
	}
}
