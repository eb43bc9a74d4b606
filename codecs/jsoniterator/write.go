package jsoniter

import (
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Stream writes JSON into memory, from where Flush sends it on.
type Stream struct {
	Error error // the first value that could not be written

	out io.Writer
	buf []byte
}

// NewStream returns a stream into a writer, with room for some bytes.
func NewStream(_ API, out io.Writer, room int) *Stream {
	return &Stream{out: out, buf: make([]byte, 0, room)}
}

// StreamPool hands out streams, and keeps their memory.
type StreamPool struct{ pool *sync.Pool }

// Pool returns the pool of streams of this size.
func (s *Stream) Pool() StreamPool {
	room := cap(s.buf)
	return StreamPool{&sync.Pool{New: func() any { return NewStream(API{}, nil, room) }}}
}

// BorrowStream returns an empty stream into a writer.
func (p StreamPool) BorrowStream(out io.Writer) *Stream {
	s := p.pool.Get().(*Stream)
	s.out, s.Error, s.buf = out, nil, s.buf[:0]
	return s
}

// ReturnStream ends the use of a stream.
func (p StreamPool) ReturnStream(s *Stream) {
	s.out = nil
	p.pool.Put(s)
}

// Buffer returns the output that was not flushed yet.
func (s *Stream) Buffer() []byte { return s.buf }

// SetBuffer replaces it.
func (s *Stream) SetBuffer(b []byte) { s.buf = b }

// Flush writes the output, or returns the first error.
func (s *Stream) Flush() error {
	if s.Error != nil {
		return s.Error
	}
	_, err := s.out.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// Write writes bytes as they are. It never fails.
func (s *Stream) Write(b []byte) (int, error) {
	s.buf = append(s.buf, b...)
	return len(b), nil
}

// WriteRaw writes a text as it is.
func (s *Stream) WriteRaw(text string) { s.buf = append(s.buf, text...) }

// WriteObjectStart begins an object.
func (s *Stream) WriteObjectStart() { s.buf = append(s.buf, '{') }

// WriteObjectEnd ends an object.
func (s *Stream) WriteObjectEnd() { s.buf = append(s.buf, '}') }

// WriteEmptyObject writes an object without members.
func (s *Stream) WriteEmptyObject() { s.buf = append(s.buf, "{}"...) }

// WriteMore writes the separator between two members.
func (s *Stream) WriteMore() { s.buf = append(s.buf, ',') }

// WriteObjectField writes the name of a member, without escapes for HTML.
func (s *Stream) WriteObjectField(name string) {
	s.buf = append(appendText(s.buf, name, false), ':')
}

// WriteInt writes a number.
func (s *Stream) WriteInt(n int) { s.buf = strconv.AppendInt(s.buf, int64(n), 10) }

// WriteVal writes a value as encoding/json does.
func (s *Stream) WriteVal(v any) {
	switch v := v.(type) {
	case string:
		s.buf = appendText(s.buf, v, true)
	case int64:
		s.buf = strconv.AppendInt(s.buf, v, 10)
	case bool:
		s.buf = strconv.AppendBool(s.buf, v)
	default:
		b, err := json.Marshal(v)
		if err != nil && s.Error == nil {
			s.Error = err
		}
		s.buf = append(s.buf, b...)
	}
}

// appendText appends a string in quotes. With HTML escapes, characters that could end a script are escaped,
// and invalid UTF-8 is replaced; otherwise bytes other than ASCII stay as they are.
func appendText(b []byte, text string, html bool) []byte {
	b = append(b, '"')
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c >= utf8.RuneSelf && html:
			r, size := utf8.DecodeRuneInString(text[at:])
			switch {
			case r == utf8.RuneError && size == 1:
				b = append(b, `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				b = append(b, `\u202`...)
				b = append(b, '8'+byte(r-'\u2028'))
			default:
				b = append(b, text[at:at+size]...)
			}
			at += size - 1
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ' || html && (c == '<' || c == '>' || c == '&'):
			const digits = "0123456789abcdef"
			b = append(b, `\u00`...)
			b = append(b, digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
