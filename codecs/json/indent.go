package json

import (
	"bytes"
	"errors"
	"io"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// MaxIndent is the number of levels with growing indentation; deeper values have that of the last level. A
// value of a few bytes can nest thousands of levels deep, and its pretty form would have the square of that
// many bytes. With the limit, a byte becomes at most 2*MaxIndent+2 of them.
const MaxIndent = 64

// indentChunk is the size of the buffer for a pretty-printed form.
const indentChunk = 64 << 10

// Indenter writes the pretty form of one JSON value, piece by piece: two spaces a level, as encoding/json
// does, down to MaxIndent levels. It trusts the value to be well-formed, and buffers no more than a chunk.
// Close must be called.
type Indenter struct {
	w     io.Writer // nil: all of it stays in buf
	buf   []byte
	depth int

	text    bool // inside a string
	escaped bool // after a backslash in it
	opened  bool // right after a bracket that nothing has followed yet
}

// NewIndenter makes an Indenter that writes to w.
func NewIndenter(w io.Writer) *Indenter { return &Indenter{w: w} }

// Write takes a part of the value.
func (i *Indenter) Write(p []byte) (int, error) {
	for at := 0; at < len(p); {
		if i.text {
			n := i.string(p[at:])
			i.buf = append(i.buf, p[at:at+n]...)
			at += n
		} else {
			i.token(p[at])
			at++
		}
		if i.w != nil && len(i.buf) >= indentChunk {
			if err := i.Close(); err != nil {
				return at, err
			}
		}
	}
	return len(p), nil
}

// string returns how much of p still belongs to the string that was begun.
func (i *Indenter) string(p []byte) int {
	p = p[:min(len(p), indentChunk)]
	for n := 0; n < len(p); n++ {
		if i.escaped {
			i.escaped = false
			continue
		}
		if n = scan.Plain(p, n); n == len(p) {
			break
		}
		switch p[n] {
		case '\\':
			i.escaped = true
		case '"':
			i.text = false
			return n + 1
		}
	}
	return len(p)
}

func (i *Indenter) token(c byte) {
	switch c {
	case ' ', '\t', '\n', '\r':
		return
	case '}', ']':
		i.depth--
		if i.opened {
			i.opened = false
		} else {
			i.line()
		}
		i.buf = append(i.buf, c)
		return
	}
	if i.opened {
		i.opened = false
		i.line()
	}
	i.buf = append(i.buf, c)
	switch c {
	case '{', '[':
		i.depth++
		i.opened = true
	case ',':
		i.line()
	case ':':
		i.buf = append(i.buf, ' ')
	case '"':
		i.text = true
	}
}

var spaces = bytes.Repeat([]byte("  "), MaxIndent)

func (i *Indenter) line() {
	i.buf = append(i.buf, '\n')
	i.buf = append(i.buf, spaces[:2*min(max(i.depth, 0), MaxIndent)]...)
}

// Close writes the rest.
func (i *Indenter) Close() error {
	_, err := i.w.Write(i.buf)
	i.buf = i.buf[:0]
	return err
}

var errUnended = errors.New("the JSON value to indent has no end")

// Indent appends the pretty form of src, which must be well-formed: the output of an Indenter. Unlike the
// plain form of an answer, the pretty form ends without a newline.
func Indent(dst, src []byte) ([]byte, error) {
	i := Indenter{buf: dst}
	_, _ = i.Write(src) // nothing is written
	if i.depth != 0 || i.text {
		return dst, errUnended
	}
	return i.buf, nil
}
