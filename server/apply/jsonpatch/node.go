package jsonpatch

import (
	stdjson "encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/rowlock/rowlock/codecs/budget"
)

// node is a value of a document: text as it came, until somebody looks inside. A nil node
// is null. What was looked into is written with sorted keys, the rest as it came.
type node struct {
	src      *source // nil for null as a value of an operation
	at, end  int     // of the text in src
	ordinal  int     // of the text's own container in src, if it is one
	opened   form
	members  map[string]*node
	elements list
}

type form uint8

const (
	unopened form = iota
	object
	array
)

// source is a text with marks, so that whatever lies inside a value can be stepped over.
// Each byte is looked at once for the marks and once by each of the values it is in that
// are opened and have no value around it that it is deeper in.
type source struct {
	text []byte
	// For each container, in the order in which they begin: where it ends, and the next
	// one that begins after that.
	ends, next []int32
}

var errEnd = errors.New("unexpected end of JSON input")

// parse marks a text, which must be well-formed JSON.
func parse(text []byte, b *budget.Budget) (*node, error) {
	s := &source{text: text}
	var open []int32
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
			continue
		case '{', '[':
			if err := b.Spend(1); err != nil {
				return nil, err
			}
			open = append(open, int32(len(s.ends)))
			s.ends, s.next = append(s.ends, 0), append(s.next, 0)
		case '}', ']':
			if len(open) == 0 {
				return nil, errEnd
			}
			last := open[len(open)-1]
			open = open[:len(open)-1]
			s.ends[last], s.next[last] = int32(i+1), int32(len(s.ends))
		}
		i++
	}
	if len(open) > 0 {
		return nil, errEnd
	}
	start := skipSpace(text, 0)
	if start == len(text) {
		return nil, errEnd
	}
	n, _, _ := s.value(start, 0)
	return n, nil
}

// value makes the node of the value at i, whose container, if it is one, has the given
// ordinal. It returns where the value ends, and the ordinal of the next container.
func (s *source) value(i, ordinal int) (n *node, end, next int) {
	switch s.text[i] {
	case '{', '[':
		end, next = int(s.ends[ordinal]), int(s.next[ordinal])
	case '"':
		end, next = stringEnd(s.text, i), ordinal
	case 'n':
		return nil, i + len("null"), ordinal
	default:
		for end = i; end < len(s.text) && !delimiter(s.text[end]); {
			end++
		}
		next = ordinal
	}
	return &node{src: s, at: i, end: end, ordinal: ordinal}, end, next
}

// delimiter tells characters that end a number or a word.
func delimiter(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\t' || c == '\r'
}

// form is what a node is, whether it was looked into or not.
func (n *node) form() form {
	switch {
	case n == nil || n.src == nil:
		return unopened
	case n.opened != unopened:
		return n.opened
	case n.src.text[n.at] == '{':
		return object
	case n.src.text[n.at] == '[':
		return array
	}
	return unopened
}

// open looks into a node, and tells what it is: an object, a list, or something that
// stays unopened.
func (n *node) open(b *budget.Budget) (form, error) {
	f := n.form()
	if f == unopened || n.opened != unopened {
		return f, nil
	}
	n.opened = f
	text, ordinal := n.src.text, n.ordinal+1
	if f == object {
		n.members = map[string]*node{}
	}
	i := skipSpace(text, n.at+1)
	for text[i] != '}' && text[i] != ']' {
		if err := b.Spend(1); err != nil {
			return f, err
		}
		key := ""
		if f == object {
			end := stringEnd(text, i)
			key = unquote(text[i:end])
			i = skipSpace(text, skipSpace(text, end)+1)
		}
		var v *node
		v, i, ordinal = n.src.value(i, ordinal)
		if f == object {
			n.members[key] = v
		} else {
			n.elements.push(v)
		}
		if i = skipSpace(text, i); text[i] == ',' {
			i = skipSpace(text, i+1)
		}
	}
	return f, nil
}

// unquote is a string without its quotes and escapes.
func unquote(quoted []byte) string {
	inner := quoted[1 : len(quoted)-1]
	for _, c := range inner {
		if c == '\\' || c >= utf8.RuneSelf {
			var s string
			_ = stdjson.Unmarshal(quoted, &s) // it is well-formed
			return s
		}
	}
	return string(inner)
}

// skipSpace is where the white space at i ends.
func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is where the string at i ends, behind its closing quote.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
