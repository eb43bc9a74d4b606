package wire

import (
	"sync"
	"time"
)

const (
	recordSize = 16 << 10           // most bytes that a TLS record carries
	bufferMax  = 4*recordSize + 256 // nothing is buffered beyond this: four records
	bufferFor  = time.Millisecond   // nor for longer than this, as a rule

	bufferSize = bufferMax + 2*recordSize
)

// GetBuffer lends an empty buffer with room for what is sent at once: few connections carry
// bulk at a time, so that few buffers are in use.
func GetBuffer() *[]byte { return buffers.Get().(*[]byte) }

// PutBuffer gives the memory of GetBuffer back. Of any other size it is left to the collector.
func PutBuffer(b *[]byte) {
	if n := cap(*b); n >= bufferSize && n <= 2*bufferSize {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, bufferSize)
	return &b
}}

// coalescer collects small writes that more will follow, and passes them on as one.
type coalescer struct {
	mu      sync.Mutex
	out     func([]byte) (int, error) // writes what was collected
	limit   time.Duration             // bytes wait for no longer than this
	pending *[]byte                   // nil while nothing waits
	timer   *time.Timer
	err     error // of a write that nobody waited for; the next write returns it
}

// write writes p after what waits. more says that other bytes will follow soon, so that
// p may wait for them.
func (c *coalescer) write(p []byte, more bool) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(p, more)
}

// add is write for callers that hold c.mu.
func (c *coalescer) add(p []byte, more bool) (int, error) {
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
		c.startTimer()
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

// startTimer makes sure that what waits is written even if nothing follows after all.
func (c *coalescer) startTimer() {
	if c.timer == nil {
		c.timer = time.AfterFunc(c.limit, c.expire)
	} else {
		c.timer.Reset(c.limit)
	}
}

// expire writes what nothing has followed.
func (c *coalescer) expire() {
	c.mu.Lock()
	_ = c.flush() // the next write returns the error
	c.mu.Unlock()
}

// flush writes what waits. The caller holds c.mu.
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
