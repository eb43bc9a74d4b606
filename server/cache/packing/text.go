package packing

import (
	"encoding/binary"
	"unsafe"
)

// View is b as a string without a copy. Only for bytes that never change.
func View(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

// Bytes returns a string's bytes without a copy. They must not be changed.
func Bytes(s string) []byte {
	if s == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// AppendText appends the length of a string and the string.
func AppendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// TextAt reads what AppendText wrote that many bytes after p, and returns a view and where it ends.
func TextAt(p *byte, at int) (text string, end int) {
	n := 0
	for shift := 0; ; shift += 7 {
		c := *(*byte)(unsafe.Add(unsafe.Pointer(p), at))
		n |= int(c&0x7f) << shift
		if at++; c < 0x80 {
			break
		}
	}
	if n == 0 {
		return "", at
	}
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(p), at)), n), at + n
}

// Cursor reads untrusted bytes. If it cannot read a value it returns an empty one and sets Bad.
type Cursor struct {
	b   []byte
	Bad bool
}

// NewCursor begins at the first byte.
func NewCursor(b []byte) Cursor { return Cursor{b: b} }

// Left returns the number of remaining bytes.
func (c *Cursor) Left() int { return len(c.b) }

// Byte reads one byte.
func (c *Cursor) Byte() byte {
	if len(c.b) == 0 {
		c.Bad = true
		return 0
	}
	v := c.b[0]
	c.b = c.b[1:]
	return v
}

// Number reads a varint.
func (c *Cursor) Number() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.b, c.Bad = nil, true
		return 0
	}
	c.b = c.b[n:]
	return v
}

// Bytes reads what AppendText wrote, and returns a view. A length in more than five bytes is invalid, because commonReader reads
// no more.
func (c *Cursor) Bytes() []byte {
	before := len(c.b)
	n := c.Number()
	if before-len(c.b) > binary.MaxVarintLen32 || n > uint64(len(c.b)) {
		c.b, c.Bad = nil, true
		return nil
	}
	return c.Next(int(n))
}

// At reads what AppendText wrote, and returns a view for TextAt.
func (c *Cursor) At() *byte {
	from := c.b
	if c.Bytes(); c.Bad {
		return nil
	}
	return &from[0]
}

// Next reads that many bytes, and returns a view.
func (c *Cursor) Next(n int) []byte {
	if n > len(c.b) {
		c.b, c.Bad = nil, true
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

// Text is Bytes as a string, which is a view.
func (c *Cursor) Text() string { return View(c.Bytes()) }
