package apply

import (
	"errors"
	"strings"
)

var errFieldSet = errors.New("not a field set in its usual spelling")

// parseFieldSet reads FieldsV1 as this package and the merge library write it:
// without spaces and without unusual escapes. Anything else is errFieldSet.
func parseFieldSet(raw []byte, memory *scratch) ([]branch, error) {
	p := fieldSetParser{text: string(raw), scratch: memory}
	if strings.Contains(p.text, `\u`) {
		return nil, errFieldSet
	}
	_, kids, err := p.object(0)
	if err == nil && p.at != len(p.text) {
		err = errFieldSet
	}
	return kids, err
}

type fieldSetParser struct {
	*scratch
	text string
	at   int
}

// maxFieldDepth bounds how deeply field sets may nest.
const maxFieldDepth = 200

// object reads {"f:x":{...},".":{}}; member tells whether it has a dot or nothing.
func (p *fieldSetParser) object(depth int) (member bool, kids []branch, err error) {
	if !p.eat('{') || depth > maxFieldDepth {
		return false, nil, errFieldSet
	}
	if p.eat('}') {
		return true, nil, nil
	}
	mark := len(p.stack)
	sorted := true
	for {
		name, ok := p.name()
		if !ok || !p.eat(':') {
			return false, nil, errFieldSet
		}
		inner, below, err := p.object(depth + 1)
		if err != nil {
			return false, nil, err
		}
		if name == "." {
			member = true
		} else {
			if len(name) < 2 || name[1] != ':' || !strings.Contains("fkvi", name[:1]) {
				return false, nil, errFieldSet
			}
			b := branch{element: name, kids: below}
			if inner {
				b.state = pathSet
			}
			if len(p.stack) > mark && p.stack[len(p.stack)-1].element >= name {
				sorted = false
			}
			p.stack = append(p.stack, b)
		}
		if p.eat('}') {
			break
		}
		if !p.eat(',') {
			return false, nil, errFieldSet
		}
	}
	if !sorted {
		sortBranches(p.stack[mark:])
	}
	return member, p.take(mark), nil
}

func (p *fieldSetParser) eat(b byte) bool {
	if p.at < len(p.text) && p.text[p.at] == b {
		p.at++
		return true
	}
	return false
}

// name reads a string and leaves its escapes in place.
func (p *fieldSetParser) name() (string, bool) {
	if !p.eat('"') {
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

// appendFieldSet writes the members of a set as FieldsV1.
func appendFieldSet(b []byte, set []branch) []byte {
	b = append(b, '{')
	b = appendKids(b, set)
	return append(b, '}')
}

func appendKids(b []byte, kids []branch) []byte {
	for i := range kids {
		k := &kids[i]
		if !k.owns() {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, k.element...)
		b = append(b, `":{`...)
		if k.state == pathSet && anyOwned(k.kids) {
			b = append(b, `".":{}`...)
		}
		b = appendKids(b, k.kids)
		b = append(b, '}')
	}
	return b
}

// owns tells whether a branch or one below it is a member.
func (k *branch) owns() bool {
	if k.state == pathSet {
		return true
	}
	for i := range k.kids {
		if k.kids[i].owns() {
			return true
		}
	}
	return false
}

func anyOwned(set []branch) bool {
	for i := range set {
		if set[i].owns() {
			return true
		}
	}
	return false
}

// disown removes from set every path that changes names, and tells whether there
// was one. It works in place.
func disown(set, changes []branch) bool {
	touched := false
	i := 0
	for c := range changes {
		change := &changes[c]
		for i < len(set) && set[i].element < change.element {
			i++
		}
		if i == len(set) {
			break
		}
		if set[i].element != change.element {
			continue
		}
		if change.state != pathNone && set[i].state == pathSet {
			set[i].state, touched = pathNone, true
		}
		touched = disown(set[i].kids, change.kids) || touched
	}
	return touched
}

// unite adds to set the members of more. The result shares branches with both.
func unite(set, more []branch) []branch {
	out := make([]branch, 0, len(set)+len(more))
	i, j := 0, 0
	for i < len(set) || j < len(more) {
		switch {
		case j == len(more) || i < len(set) && set[i].element < more[j].element:
			out = append(out, set[i])
			i++
		case i == len(set) || more[j].element < set[i].element:
			out = append(out, more[j])
			j++
		default:
			b := branch{element: set[i].element, state: set[i].state}
			if more[j].state == pathSet {
				b.state = pathSet
			} else if b.state == pathGone {
				b.state = pathNone
			}
			switch {
			case len(set[i].kids) == 0:
				b.kids = more[j].kids
			case len(more[j].kids) == 0:
				b.kids = set[i].kids
			default:
				b.kids = unite(set[i].kids, more[j].kids)
			}
			out = append(out, b)
			i++
			j++
		}
	}
	return out
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends a string as JSON in the spelling of the merge library.
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
