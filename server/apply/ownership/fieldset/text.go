package fieldset

import "strings"

// Parse reads FieldsV1 as the library and this package write it: without white space and
// without unusual escapes. All other text is ErrUnsupported.
func Parse(raw []byte, memory *Memory) (Set, error) {
	p := parser{text: string(raw), Memory: memory}
	if strings.Contains(p.text, `\u`) {
		return nil, ErrUnsupported
	}
	_, set, err := p.object(0)
	if err == nil && p.at != len(p.text) {
		err = ErrUnsupported
	}
	return set, err
}

type parser struct {
	*Memory
	text string
	at   int
}

// maxDepth bounds how deeply the text of a set may nest.
const maxDepth = 200

// object reads what is below a path: {"f:x":{...},".":{}}. isMember tells whether the path
// itself is in the set, which a dot says, or that nothing is below it.
func (p *parser) object(depth int) (isMember bool, children Set, err error) {
	if !p.skip('{') || depth > maxDepth {
		return false, nil, ErrUnsupported
	}
	if p.skip('}') {
		return true, nil, nil
	}
	mark := len(p.stack)
	sorted := true
	for {
		name, ok := p.name()
		if !ok || !p.skip(':') {
			return false, nil, ErrUnsupported
		}
		inner, below, err := p.object(depth + 1)
		if err != nil {
			return false, nil, err
		}
		if name == "." {
			isMember = true
		} else {
			if len(name) < 2 || name[1] != ':' || !strings.Contains("fkvi", name[:1]) {
				return false, nil, ErrUnsupported
			}
			b := branch{element: name, children: below}
			if inner {
				b.state = member
			}
			if len(p.stack) > mark && p.stack[len(p.stack)-1].element >= name {
				sorted = false
			}
			p.stack = append(p.stack, b)
		}
		if p.skip('}') {
			break
		}
		if !p.skip(',') {
			return false, nil, ErrUnsupported
		}
	}
	if !sorted {
		p.stack[mark:].sort()
	}
	return isMember, p.take(mark), nil
}

// skip steps over a character, if it is the next one.
func (p *parser) skip(b byte) bool {
	if p.at < len(p.text) && p.text[p.at] == b {
		p.at++
		return true
	}
	return false
}

// name reads a string and leaves its escapes in place.
func (p *parser) name() (string, bool) {
	if !p.skip('"') {
		return "", false
	}
	start := p.at
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case '"':
			p.at++
			return p.text[start : p.at-1], true
		case '\\':
			p.at++
		}
		p.at++
	}
	return "", false
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
