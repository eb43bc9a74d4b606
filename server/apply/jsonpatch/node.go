package jsonpatch

import (
	"errors"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// node is a value of a document: its text, until an operation reaches inside. A nil node is null. A value
// that was opened is written with sorted keys, others unchanged.
type node struct {
	src      *source // nil for null as a value of an operation
	at, end  int     // of the text in src
	ordinal  int     // of the container in src that the text is, if it is one
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

// source is a text with marks, so that the content of a value can be skipped. Each byte is read once for the
// marks, and once by each opened value that contains it directly.
type source struct {
	text []byte
	// For each container, in the order of their beginnings: its end, and the next container that begins after
	// that.
	ends, next []int32
}

var errEnd = errors.New("unexpected end of JSON input")

// parse marks a text, which must be well-formed JSON.
func parse(text []byte, b *budget.Budget) (*node, error) {
	s := &source{text: text}
	var open []int32
	for at := range scan.Brackets(text) {
		switch text[at] {
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
			s.ends[last], s.next[last] = int32(at+1), int32(len(s.ends))
		}
	}
	start := scan.Space(text, 0)
	if len(open) > 0 || start == len(text) {
		return nil, errEnd
	}
	n, end, _ := s.value(start, 0)
	if end < 0 {
		return nil, errEnd
	}
	return n, nil
}

// value makes the node of the value at i, whose container, if it is one, has the given
// ordinal. It returns where the value ends, and the ordinal of the next container.
func (s *source) value(i, ordinal int) (n *node, end, next int) {
	switch s.text[i] {
	case '{', '[':
		end, next = int(s.ends[ordinal]), int(s.next[ordinal])
	case 'n':
		return nil, scan.Word(s.text, i, "null"), ordinal
	default:
		end, next = scan.Loose.Value(s.text, i, 0), ordinal
	}
	return &node{src: s, at: i, end: end, ordinal: ordinal}, end, next
}

// form returns the kind of a node's value, opened or not.
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

// open parses a node, and returns its kind: an object, a list, or something that
// stays unopened.
func (n *node) open(b *budget.Budget) (form, error) {
	f := n.form()
	if f == unopened || n.opened != unopened {
		return f, nil
	}
	n.opened = f
	text, ordinal := n.src.text, n.ordinal+1
	var err error
	inner := func(at int) (v *node, end int) {
		if err = b.Spend(1); err != nil {
			return nil, -1
		}
		v, end, ordinal = n.src.value(at, ordinal)
		return v, end
	}
	var end int
	if f == object {
		n.members = map[string]*node{}
		end = scan.Loose.Members(text, n.at, func(name scan.Name, at int) (int, bool) {
			v, end := inner(at)
			n.members[memberName(text, name)] = v
			return end, true
		})
	} else {
		end = scan.Loose.Elements(text, n.at, func(at int) (int, bool) {
			v, end := inner(at)
			n.elements.push(v)
			return end, true
		})
	}
	if err == nil && end < 0 {
		err = errEnd
	}
	return f, err
}

// memberName returns the name of a member as encoding/json reads it, which makes text that is no
// UTF-8 valid.
func memberName(text []byte, name scan.Name) string {
	if name.Has != 0 {
		return scan.Unquote(text[name.At:name.End])
	}
	return string(name.In(text))
}
