package json

import (
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/yield"
)

// source is the text being read. Decoded strings are parts of it.
type source struct {
	text  string
	data  []byte // the same memory, which must not be changed
	at    int
	depth int
	usual [16]uint8 // how many members the last object of a tree had, by depth: the next one begins with room for as many
}

func newSource(text string) *source {
	return &source{text: text, data: unsafe.Slice(unsafe.StringData(text), len(text))}
}

// space skips white space and returns where the next value starts.
func (s *source) space() int {
	s.at = scan.Space(s.data, s.at)
	return s.at
}

// end reports whether only white space is left.
func (s *source) end() bool { return s.space() == len(s.text) }

// peek returns the first byte of the next value, or 0.
func (s *source) peek() byte {
	if s.space() < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// move continues at the end that a function of package scan returned.
func (s *source) move(end int) bool {
	if end < 0 {
		return false
	}
	s.at = end
	return true
}

func (s *source) word(w string) bool { return s.move(scan.Word(s.data, s.space(), w)) }

func (s *source) null() bool { return s.peek() == 'n' && s.word("null") }

// skip moves over a value and checks that it is well-formed.
func (s *source) skip() bool {
	return s.move(scan.Loose.Value(s.data, s.space(), decodeDepth-s.depth))
}

// object reads members; value reads the value after each name.
func (s *source) object(value func(name string) bool) bool {
	if s.depth++; s.depth > decodeDepth {
		return false
	}
	ok := s.move(scan.Loose.Members(s.data, s.space(), func(n scan.Name, at int) (int, bool) {
		name, ok := s.string(n.At, n.End, n.Has)
		s.at = at
		if !ok || !value(name) {
			return -1, false
		}
		yield.Within(at, s.at)
		return s.at, true
	}))
	s.depth--
	return ok
}

// array reads elements one by one.
func (s *source) array(element func() bool) bool {
	if s.depth++; s.depth > decodeDepth {
		return false
	}
	ok := s.move(scan.Loose.Elements(s.data, s.space(), func(at int) (int, bool) {
		if s.at = at; !element() {
			return -1, false
		}
		yield.Within(at, s.at)
		return s.at, true
	}))
	s.depth--
	return ok
}

// str reads a string literal. It gives up at invalid UTF-8 and at surrogates.
func (s *source) str() (string, bool) {
	at := s.space()
	end, has := scan.String(s.data, at)
	if !s.move(end) {
		return "", false
	}
	return s.string(at, end, has)
}

// string returns the content of a literal.
func (s *source) string(at, end int, has scan.Text) (string, bool) {
	text := s.text[at+1 : end-1]
	switch {
	case has == 0:
		return text, true
	case has&scan.Escaped == 0:
		return text, utf8.ValidString(text)
	}
	buf := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			n := strings.IndexByte(text[i:], '\\')
			if n < 0 {
				n = len(text) - i
			}
			buf = append(buf, text[i:i+n]...)
			i += n
			continue
		}
		var n int
		if buf, n = unescape(buf, text[i:]); n == 0 {
			return "", false
		}
		i += n
	}
	return string(buf), utf8.Valid(buf)
}

// unescape appends the character of the escape at the start of text; n is its length, 0 for unknown ones.
func unescape(buf []byte, text string) (_ []byte, n int) {
	if len(text) < 2 {
		return buf, 0
	}
	switch c := text[1]; c {
	case '"', '\\', '/':
		return append(buf, c), 2
	case 'n':
		return append(buf, '\n'), 2
	case 't':
		return append(buf, '\t'), 2
	case 'r':
		return append(buf, '\r'), 2
	case 'b':
		return append(buf, '\b'), 2
	case 'f':
		return append(buf, '\f'), 2
	case 'u':
		if len(text) < 6 {
			return buf, 0
		}
		r, err := strconv.ParseUint(text[2:6], 16, 16)
		if err != nil || 0xd800 <= r && r < 0xe000 {
			return buf, 0
		}
		return utf8.AppendRune(buf, rune(r)), 6
	}
	return buf, 0
}

// maxUsual bounds the room that an object of a tree begins with: a table of 32 places.
const maxUsual = 28

// tree reads an object as a map of plain values. It fails if a name occurs twice.
func (s *source) tree() (map[string]any, bool) {
	var m map[string]any
	members, usual := 0, &s.usual[min(s.depth, len(s.usual)-1)]
	ok := s.object(func(name string) bool {
		if m == nil {
			m = make(map[string]any, *usual)
		}
		v, ok := s.any()
		m[name] = v
		members++
		return ok && len(m) == members
	})
	if m == nil {
		m = map[string]any{}
	}
	*usual = uint8(min(members, maxUsual))
	return m, ok
}

// any reads a value into plain Go types: whole numbers that fit are int64.
func (s *source) any() (any, bool) {
	switch c := s.peek(); c {
	case '{':
		return s.tree()
	case '[':
		list := []any{}
		return list, s.array(func() bool {
			v, ok := s.any()
			list = append(list, v)
			return ok
		})
	case '"':
		return s.str()
	case 't':
		return true, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return nil, s.null()
	}
	start := s.at
	if !s.move(scan.Number(s.data, start)) {
		return nil, false
	}
	text := s.text[start:s.at]
	if !strings.Contains(text, ".") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}
