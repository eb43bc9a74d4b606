package wire

import (
	"sync"
	"time"
)

const (
	recordSize = 16 << 10           // bytes of data in a TLS record
	bufferMax  = 4*recordSize + 256 // bytes that are buffered: four records
	bufferFor  = time.Millisecond   // how long bytes are buffered

	bufferSize = bufferMax + 2*recordSize
)

// GetBuffer returns an empty buffer of a pool, with room for the bytes of one send. Few connections
// send at a time, so few buffers are in use.
func GetBuffer() *[]byte { return buffers.Get().(*[]byte) }

// PutBuffer returns a buffer to the pool, unless it is of another size.
func PutBuffer(b *[]byte) {
	if n := cap(*b); n >= bufferSize && n <= 2*bufferSize {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

var buffers = sync.Pool{New: func() any {
	return new(make([]byte, 0, bufferSize))
}}

// coalescer combines small writes that are followed by more into one.
type coalescer struct {
	mu      sync.Mutex
	out     func([]byte) (int, error)
	pending *[]byte // nil: none
	timer   *time.Timer
	err     error // of a write by the timer; the next write returns it
}

// write writes p after the pending bytes. more means that other bytes follow soon, for which p may wait.
func (c *coalescer) write(p []byte, more bool) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if c.pending != nil && len(*c.pending)+len(p) > cap(*c.pending) {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	if c.pending == nil {
		if !more || len(p) >= bufferMax-recordSize {
			return c.out(p)
		}
		c.pending = GetBuffer()
		if c.timer == nil {
			c.timer = time.AfterFunc(bufferFor, c.expire)
		} else {
			c.timer.Reset(bufferFor)
		}
	}
	*c.pending = append(*c.pending, p...)
	if more && len(*c.pending) < bufferMax-recordSize {
		return len(p), nil
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// expire writes the pending bytes although no others have followed.
func (c *coalescer) expire() {
	c.mu.Lock()
	_ = c.flush() // the next write returns the error
	c.mu.Unlock()
}

// flush writes the pending bytes. The caller holds c.mu.
func (c *coalescer) flush() error {
	if c.pending == nil {
		return c.err
	}
	c.timer.Stop()
	_, c.err = c.out(*c.pending)
	PutBuffer(c.pending)
	c.pending = nil
	return c.err
}
