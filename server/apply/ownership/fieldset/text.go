package fieldset

import (
	"bytes"
	"strings"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// Parse reads FieldsV1 as the library and this package write it: without white space and
// without unusual escapes. All other text is ErrUnsupported.
func Parse(raw []byte, memory *Memory) (Set, error) {
	if bytes.Contains(raw, []byte(`\u`)) {
		return nil, ErrUnsupported
	}
	p := parser{raw: raw, text: string(raw), Memory: memory}
	end, _, set := p.object(0, 0)
	if end != len(raw) {
		return nil, ErrUnsupported
	}
	return set, nil
}

type parser struct {
	*Memory
	raw  []byte
	text string // a copy, of which elements are parts
}

// maxDepth bounds how deeply the text of a set may nest.
const maxDepth = 200

// object reads the value of a path: {"f:x":{...},".":{}}. isMember reports whether the path
// itself is in the set: the value has a dot, or is empty. end is -1 for a text that is
// not supported.
func (p *parser) object(at, depth int) (end int, isMember bool, children Set) {
	if depth > maxDepth {
		return -1, false, nil
	}
	mark := len(p.stack)
	sorted, empty := true, true
	end = scan.Tight.Members(p.raw, at, func(n scan.Name, at int) (int, bool) {
		end, inner, below := p.object(at, depth+1)
		empty = false
		name := p.text[n.At+1 : n.End-1] // its escapes stay in place
		if name == "." {
			isMember = true
			return end, true
		}
		if len(name) < 2 || name[1] != ':' || !strings.Contains("fkvi", name[:1]) {
			return -1, false
		}
		b := branch{element: name, children: below}
		if inner {
			b.state = member
		}
		if len(p.stack) > mark && p.stack[len(p.stack)-1].element >= name {
			sorted = false
		}
		p.stack = append(p.stack, b)
		return end, true
	})
	if end < 0 {
		return -1, false, nil
	}
	if !sorted {
		p.stack[mark:].sort()
	}
	return end, isMember || empty, p.take(mark)
}

// Append writes the members of a set as FieldsV1.
func (s Set) Append(b []byte) []byte {
	b = append(b, '{')
	b = s.appendBranches(b)
	return append(b, '}')
}

func (s Set) appendBranches(b []byte) []byte {
	for i := range s {
		k := &s[i]
		if !k.hasMember() {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, k.element...)
		b = append(b, `":{`...)
		if k.state == member && !k.children.Empty() {
			b = append(b, `".":{}`...)
		}
		b = k.children.appendBranches(b)
		b = append(b, '}')
	}
	return b
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes a string as JSON, in the spelling of the library.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < 0x20:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
