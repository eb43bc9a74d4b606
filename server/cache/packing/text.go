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

// AppendText appends a string behind its length.
func AppendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// Cursor reads bytes that may be anything. What it cannot read is empty, and Bad is set.
type Cursor struct {
	b   []byte
	Bad bool
}

// NewCursor begins with the first of some bytes.
func NewCursor(b []byte) Cursor { return Cursor{b: b} }

// Left is how many bytes are left.
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

// Bytes reads what AppendText wrote; it is a view. A length in more bytes than it needs is none: commonReader looks at so
// many alone.
func (c *Cursor) Bytes() []byte {
	before := len(c.b)
	n := c.Number()
	if before-len(c.b) > binary.MaxVarintLen32 || n > uint64(len(c.b)) {
		c.b, c.Bad = nil, true
		return nil
	}
	v := c.b[:n:n]
	c.b = c.b[n:]
	return v
}

// Text is Bytes as a string; it is a view.
func (c *Cursor) Text() string { return View(c.Bytes()) }
