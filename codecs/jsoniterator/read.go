package jsoniter

import (
	"fmt"
	"io"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// mostDepth is the maximum depth of values, because the reader is recursive.
const mostDepth = 10000

// Iterator reads one value from its beginning, and nothing after it. Error has the first error, which ends the
// reading.
type Iterator struct {
	Error error

	in    []byte
	at    int
	depth int
}

// NewIterator returns an iterator over nothing.
func NewIterator(API) *Iterator { return &Iterator{} }

// Parse returns an iterator over all that a reader has.
func Parse(_ API, r io.Reader, _ int) *Iterator {
	in, err := io.ReadAll(r)
	return &Iterator{in: in, Error: err}
}

// IteratorPool hands out iterators.
type IteratorPool struct{}

// Pool returns the pool of the iterator.
func (*Iterator) Pool() IteratorPool { return IteratorPool{} }

// BorrowIterator returns an iterator over some bytes. Its results do not refer to them.
func (IteratorPool) BorrowIterator(in []byte) *Iterator { return &Iterator{in: in} }

// ReturnIterator ends the use of an iterator. They are small, and not pooled.
func (IteratorPool) ReturnIterator(*Iterator) {}

// ReportError records the first error.
func (i *Iterator) ReportError(operation, message string) {
	if i.Error == nil {
		i.Error = fmt.Errorf("%s: %s, at byte %d of %d", operation, message, i.at, len(i.in))
	}
}

// next passes blanks and returns the byte behind them, which is not passed, or 0 at the end.
func (i *Iterator) next() byte {
	for ; i.at < len(i.in); i.at++ {
		switch c := i.in[i.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take passes a byte if it is the next one.
func (i *Iterator) take(c byte) bool {
	if i.Error != nil || i.next() != c {
		return false
	}
	i.at++
	return true
}

// word skips a literal of JSON.
func (i *Iterator) word(w string) {
	if len(i.in)-i.at < len(w) || string(i.in[i.at:i.at+len(w)]) != w {
		i.ReportError("read", "expected "+w)
		return
	}
	i.at += len(w)
}

// Read reads a value of any type, as encoding/json does into an any.
func (i *Iterator) Read() any {
	if i.Error != nil {
		return nil
	}
	switch c := i.next(); c {
	case '"':
		return i.text()
	case '{':
		m := map[string]any{}
		i.members(func(i *Iterator, key string) bool {
			m[key] = i.Read()
			return i.Error == nil
		})
		return m
	case '[':
		return i.list()
	case 't':
		i.word("true")
		return true
	case 'f':
		i.word("false")
		return false
	case 'n':
		i.word("null")
		return nil
	default:
		return i.number()
	}
}

// Skip passes a value.
func (i *Iterator) Skip() { i.Read() }

// ReadObjectCB calls a function for each member of an object, which reads the value and may end the reading
// by returning false. A null has no members. It reports whether the object was read to its end.
func (i *Iterator) ReadObjectCB(member func(*Iterator, string) bool) bool { return i.ReadMapCB(member) }

// ReadMapCB is ReadObjectCB.
func (i *Iterator) ReadMapCB(member func(*Iterator, string) bool) bool {
	if i.Error != nil {
		return false
	}
	switch i.next() {
	case 'n':
		i.word("null")
		return i.Error == nil
	case '{':
		return i.members(member)
	default:
		i.ReportError("read object", "expected { or null")
		return false
	}
}

// enter goes one level deeper, past the bracket, if it is not too deep.
func (i *Iterator) enter() bool {
	if i.depth++; i.depth > mostDepth {
		i.ReportError("read", "exceeded max depth")
		return false
	}
	i.at++
	return true
}

func (i *Iterator) members(member func(*Iterator, string) bool) bool {
	if !i.enter() {
		return false
	}
	defer func() { i.depth-- }()
	if i.take('}') {
		return true
	}
	for {
		if i.next() != '"' {
			i.ReportError("read object", "expected a name in quotes")
			return false
		}
		key := i.text()
		if !i.take(':') {
			i.ReportError("read object", "expected : behind a name")
			return false
		}
		if !member(i, key) || i.Error != nil {
			return false
		}
		if !i.take(',') {
			break
		}
	}
	if !i.take('}') {
		i.ReportError("read object", "expected , or }")
		return false
	}
	return true
}

func (i *Iterator) list() any {
	list := []any{}
	if !i.enter() {
		return nil
	}
	defer func() { i.depth-- }()
	if i.take(']') {
		return list
	}
	for {
		list = append(list, i.Read())
		if i.Error != nil {
			return nil
		}
		if !i.take(',') {
			break
		}
	}
	if !i.take(']') {
		i.ReportError("read array", "expected , or ]")
		return nil
	}
	return list
}

// digits skips digits, and reports whether there was one.
func (i *Iterator) digits() bool {
	from := i.at
	for i.at < len(i.in) && '0' <= i.in[i.at] && i.in[i.at] <= '9' {
		i.at++
	}
	return i.at > from
}

// is skips one of some bytes.
func (i *Iterator) is(set string) bool {
	for n := range len(set) {
		if i.at < len(i.in) && i.in[i.at] == set[n] {
			i.at++
			return true
		}
	}
	return false
}

func (i *Iterator) number() any {
	from := i.at
	i.is("-")
	good := i.is("0") || i.digits()
	if good && i.is(".") {
		good = i.digits()
	}
	if good && i.is("eE") {
		i.is("+-")
		good = i.digits()
	}
	if !good {
		i.ReportError("read", "expected a value")
		return nil
	}
	n, err := strconv.ParseFloat(string(i.in[from:i.at]), 64)
	if err != nil {
		i.ReportError("read number", err.Error())
	}
	return n
}

// text reads a string. Invalid UTF-8 stays as it is.
func (i *Iterator) text() string {
	i.at++
	from := i.at
	for ; i.at < len(i.in); i.at++ {
		switch c := i.in[i.at]; {
		case c == '"':
			i.at++
			return string(i.in[from : i.at-1])
		case c == '\\':
			return i.escaped(append([]byte(nil), i.in[from:i.at]...))
		case c < ' ':
			i.ReportError("read string", "control character in a string")
			return ""
		}
	}
	i.ReportError("read string", "unexpected end of the input")
	return ""
}

// escapes are the characters after a backslash, and their meaning.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads the rest of a string from its first backslash on.
func (i *Iterator) escaped(out []byte) string {
	for i.at < len(i.in) {
		c := i.in[i.at]
		i.at++
		switch {
		case c == '"':
			return string(out)
		case c < ' ':
			i.ReportError("read string", "control character in a string")
			return ""
		case c != '\\':
			out = append(out, c)
		case i.is("u"):
			out = utf8.AppendRune(out, i.character())
		case i.at < len(i.in) && escapes[i.in[i.at]] != 0:
			out = append(out, escapes[i.in[i.at]])
			i.at++
		default:
			i.ReportError("read string", "unknown escape")
		}
		if i.Error != nil {
			return ""
		}
	}
	i.ReportError("read string", "unexpected end of the input")
	return ""
}

// character reads the part after \u: a character, or both halves of one.
func (i *Iterator) character() rune {
	first := i.hex()
	if !utf16.IsSurrogate(first) {
		return first
	}
	if len(i.in)-i.at < 6 || i.in[i.at] != '\\' || i.in[i.at+1] != 'u' {
		return unicode.ReplacementChar
	}
	at := i.at
	i.at += 2
	both := utf16.DecodeRune(first, i.hex())
	if both == unicode.ReplacementChar {
		i.at = at // the second is a character of its own
	}
	return both
}

func (i *Iterator) hex() rune {
	if len(i.in)-i.at < 4 {
		i.ReportError("read string", "expected four hexadecimal digits")
		return 0
	}
	n, err := strconv.ParseUint(string(i.in[i.at:i.at+4]), 16, 16)
	if err != nil {
		i.ReportError("read string", "expected four hexadecimal digits")
	}
	i.at += 4
	return rune(n)
}
