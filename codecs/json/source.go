package json

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// space skips white space and returns where the next value starts.
func (s *source) space() int {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return s.at
		}
	}
	return s.at
}

// end tells whether only white space is left.
func (s *source) end() bool { return s.space() == len(s.text) }

// peek is the first byte of the next value, or 0.
func (s *source) peek() byte {
	if s.space() < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// take takes one byte if it is next.
func (s *source) take(c byte) bool {
	if s.peek() == c {
		s.at++
		return true
	}
	return false
}

func (s *source) word(w string) bool {
	if s.peek() == w[0] && strings.HasPrefix(s.text[s.at:], w) {
		s.at += len(w)
		return true
	}
	return false
}

func (s *source) null() bool { return s.word("null") }

// object reads members; value reads what follows each name.
func (s *source) object(value func(name string) bool) bool {
	if s.depth++; s.depth > decodeDepth || !s.take('{') {
		return false
	}
	if s.take('}') {
		s.depth--
		return true
	}
	for {
		if s.peek() != '"' {
			return false
		}
		name, ok := s.str()
		if !ok || !s.take(':') || !value(name) {
			return false
		}
		if s.take('}') {
			s.depth--
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// str reads a string literal. It gives up at invalid UTF-8 and at surrogates.
func (s *source) str() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	start, ascii := s.at, true
	for i := start; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			text := s.text[start:i]
			return text, ascii || utf8.ValidString(text)
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// escaped reads the rest of a string literal from its first escape on.
func (s *source) escaped(start, i int) (string, bool) {
	buf := make([]byte, 0, 2*(i-start)+32)
	buf = append(buf, s.text[start:i]...)
	for i < len(s.text) {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return string(buf), utf8.Valid(buf)
		case c < ' ':
			return "", false
		case c != '\\':
			buf = append(buf, c)
			i++
		default:
			var n int
			if buf, n = unescape(buf, s.text[i:]); n == 0 {
				return "", false
			}
			i += n
		}
	}
	return "", false
}

// unescape appends what the escape at the start of text means; n is its length, 0
// for those not known here.
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

// number moves over a number literal.
func (s *source) number() bool {
	i := s.space()
	digits := func() bool {
		start := i
		for i < len(s.text) && '0' <= s.text[i] && s.text[i] <= '9' {
			i++
		}
		return i > start
	}
	at := func(set string) bool { return i < len(s.text) && strings.IndexByte(set, s.text[i]) >= 0 }
	if at("-") {
		i++
	}
	if at("0") {
		i++
	} else if !digits() {
		return false
	}
	if at(".") {
		if i++; !digits() {
			return false
		}
	}
	if at("eE") {
		if i++; at("+-") {
			i++
		}
		if !digits() {
			return false
		}
	}
	s.at = i
	return true
}

// skip moves over a value and checks that it is well-formed.
func (s *source) skip() bool {
	switch c := s.peek(); c {
	case '{':
		return s.object(func(string) bool { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		_, ok := s.str()
		return ok
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.null()
	}
	return s.number()
}

// array reads elements one by one.
func (s *source) array(element func() bool) bool {
	if s.depth++; s.depth > decodeDepth || !s.take('[') {
		return false
	}
	if s.take(']') {
		s.depth--
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.take(']') {
			s.depth--
			return true
		}
		if !s.take(',') {
			return false
		}
	}
}

// any reads a value into plain Go types: whole numbers that fit are int64.
func (s *source) any() (any, bool) {
	switch c := s.peek(); c {
	case '{':
		m := map[string]any{}
		return m, s.object(func(name string) bool {
			if _, again := m[name]; again {
				return false
			}
			v, ok := s.any()
			m[name] = v
			return ok
		})
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
	if !s.number() {
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
