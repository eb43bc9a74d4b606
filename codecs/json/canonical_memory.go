package json

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// Objects of one kind repeat each other: tolerations, probes, managed fields. The checker remembers the text
// of the last few accepted values of a field, and accepts the same text there again without a walk: a
// comparison costs a twentieth of it.

// Limits of one memory. There are about as many memories as concurrent walks, and the garbage collector frees
// unused ones.
const (
	rememberEach  = 4       // values of a place
	rememberLeast = 48      // bytes of a value: comparing less is no gain
	rememberMost  = 2 << 10 // bytes of a value
	rememberAll   = 1 << 20 // bytes of all
	rememberOften = 8       // consecutive new values after which few are cached: they are not similar
	rememberRare  = 64      // then one in this many is cached
)

// memory holds accepted values, by place. It is used by one walk at a time.
type memory struct {
	places []place
	bytes  int
}

// place holds the values of one checker, the one to be forgotten next, and how many came in a row
// that were not known.
type place struct {
	values [rememberEach]accepted
	next   int
	missed int
}

type accepted struct {
	text  []byte
	depth int // how deep it stood: deeper it may nest too much
}

var (
	memories sync.Pool // of *memory
	places   atomic.Int64
)

// memoized returns a checker that caches results, for values that are often equal. Its result must not depend on the
// context, and it must not keep the text.
func memoized(f checker) checker {
	at := int(places.Add(1)) - 1
	return func(c *checking, i int) int {
		if end := c.memory.known(at, c, i); end >= 0 {
			return end
		}
		end := f(c, i)
		if n := end - i; n >= rememberLeast && n <= rememberMost {
			c.memory.keep(at, c.data[i:end], c.depth)
		}
		return end
	}
}

// known finds a remembered value of a place at an index, and returns the index after it, or -1. Only objects
// and arrays are remembered, so none is a prefix of another.
func (m *memory) known(at int, c *checking, i int) int {
	if at >= len(m.places) {
		return -1
	}
	p, rest := &m.places[at], c.data[i:]
	for j := range p.values {
		v := &p.values[j]
		if n := len(v.text); n > 0 && n <= len(rest) && bytes.Equal(rest[:n], v.text) && c.depth <= v.depth {
			p.missed = 0
			return i + n
		}
	}
	return -1
}

// keep remembers a value in the place of the oldest one there.
func (m *memory) keep(at int, text []byte, depth int) {
	if text[0] != '{' && text[0] != '[' {
		return
	}
	for at >= len(m.places) {
		m.places = append(m.places, place{})
	}
	p := &m.places[at]
	if p.missed++; p.missed > rememberOften && p.missed%rememberRare != 0 {
		return
	}
	v := &p.values[p.next]
	if m.bytes += max(0, len(text)-cap(v.text)); m.bytes > rememberAll {
		*m = memory{}
		return
	}
	v.text, v.depth = append(v.text[:0], text...), depth
	p.next = (p.next + 1) % rememberEach
}

// walkWith lends a memory to a walk.
func walkWith(walk func(*memory)) {
	m, _ := memories.Get().(*memory)
	if m == nil {
		m = &memory{}
	}
	defer memories.Put(m)
	walk(m)
}
