package objects

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// Memory says what becomes of the memory that objects are encoded in to be stored.
type Memory string

// The ways.
const (
	ReusedMemory   Memory = "reused"   // given back, it is used for the next object; the default
	StandardMemory Memory = "standard" // each object has its own, which the collector takes
	// ScrubbedMemory is for tests: it is overwritten when it is given back, and used for nothing any more,
	// so whoever looks at it afterwards sees no object. What is given back twice panics.
	ScrubbedMemory Memory = "scrubbed"
)

// scratches lends the memory that objects are encoded in, and headers what it is put there with.
var (
	scratches = sync.Pool{New: func() any {
		made.Add(1)
		return new([]byte)
	}}
	headers = sync.Pool{New: func() any { return new([]byte) }}
	made    atomic.Int64
)

// Made is how often there was no memory at hand to encode in. What is not given back is made anew for
// others, which is how tests find it.
func Made() int64 { return made.Load() }

const (
	maxScratch = 512 << 10 // the largest of it that is kept
	maxLent    = 32 << 10  // the largest that a write has for itself until it is stored
)

// lend gives a write what was encoded, until it releases it.
func (m Memory) lend(scratch *[]byte) []byte {
	if m == StandardMemory || cap(*scratch) > maxLent {
		return m.kept(scratch)
	}
	data := *scratch
	*scratch = nil
	headers.Put(scratch)
	return data
}

// kept is a copy of what was encoded into memory that is lent, which it gives back.
func (m Memory) kept(scratch *[]byte) []byte {
	data := bytes.Clone(*scratch)
	if m == ScrubbedMemory {
		scrub(*scratch)
	}
	if cap(*scratch) <= maxScratch {
		scratches.Put(scratch)
	}
	return data
}

// release takes back what was lent.
func (m Memory) release(value []byte) {
	switch {
	case cap(value) == 0 || cap(value) > maxLent || m == StandardMemory:
	case m == ScrubbedMemory:
		if len(value) > 0 && bytes.Count(value, []byte{scrubbed}) == len(value) {
			panic("objects: the memory of a value is given back twice")
		}
		scrub(value)
	default:
		header := headers.Get().(*[]byte)
		*header = value[:0]
		scratches.Put(header)
	}
}

// scrubbed is a byte that stands in no JSON.
const scrubbed = 0xFF

func scrub(value []byte) {
	value = value[:cap(value)]
	for i := range value {
		value[i] = scrubbed
	}
}
