package schema

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/rowlock/rowlock/codecs/json/scan"
)

// rootMarks are the properties of a kind's schema that are not in its text, as JSON.
type rootMarks struct{ kinds, selectable []byte }

// newRootMarks returns the marks of a definition.
func newRootMarks(kinds []gvkMark, fields []selectableMark) (m rootMarks, err error) {
	if len(kinds) > 0 {
		if m.kinds, err = json.Marshal(kinds); err != nil {
			return m, err
		}
	}
	m.selectable, err = json.Marshal(fields)
	return m, err
}

// wholeJSON describes a kind that preserves unknown fields.
func (m *rootMarks) wholeJSON(dst []byte) []byte {
	dst = append(dst, `{"type":"object","`+gvkExtension+`":`...)
	if m.kinds == nil {
		dst = append(dst, "null"...)
	}
	dst = append(append(dst, m.kinds...), `,"`+selectableExtension+`":`...)
	return append(append(dst, m.selectable...), '}')
}

// appendJSON appends OpenAPI 2 of the kind, as encoding/json writes it.
func (o *outline) appendJSON(dst []byte, marks rootMarks) []byte {
	if o.root.has(keywordPreserve) {
		return marks.wholeJSON(dst)
	}
	return o.schemaJSON(dst, o.root, &marks)
}

// schemaJSON appends a schema; marks are nil below the root.
func (o *outline) schemaJSON(dst []byte, s *outlined, marks *rootMarks) []byte {
	dst = append(dst, '{')
	first := len(dst)
	for k := range keywordCount {
		p := s.places[k]
		if p.end == 0 && (marks == nil || k != keywordKinds && k != keywordSelectable) {
			continue
		}
		before := len(dst)
		if before > first {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), keywordNames[k]...), `":`...)
		switch k {
		case keywordKinds:
			if marks.kinds == nil {
				dst = dst[:before]
				continue
			}
			dst = append(dst, marks.kinds...)
		case keywordSelectable:
			dst = append(dst, marks.selectable...)
		case keywordItems:
			dst = o.schemaJSON(dst, s.items, nil)
		case keywordAdditional:
			if s.values == nil {
				dst = append(dst, o.in(p)...)
			} else {
				dst = o.schemaJSON(dst, s.values, nil)
			}
		case keywordProperties:
			dst = o.propertiesJSON(dst, s)
		case keywordRequired:
			dst = append(dst, '[')
			start := len(dst)
			for name := range s.required(o.text) {
				if len(dst) > start {
					dst = append(dst, ',')
				}
				dst = appendLiteral(dst, name)
			}
			dst = append(dst, ']')
		default:
			dst = o.valueJSON(dst, k, p)
		}
	}
	return append(dst, '}')
}

func (o *outline) propertiesJSON(dst []byte, s *outlined) []byte {
	dst = append(dst, '{')
	for i := range s.properties {
		p := &s.properties[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendName(dst, p.name), ':')
		if p.of == nil {
			dst = append(dst, p.fixed.json...)
		} else {
			dst = o.schemaJSON(dst, p.of, nil)
		}
	}
	return append(dst, '}')
}

// valueJSON appends a value that is not a schema.
func (o *outline) valueJSON(dst []byte, k keyword, p place) []byte {
	switch k {
	case keywordRules:
		return o.listJSON(dst, p, o.ruleJSON)
	case keywordEnum, keywordListMapKeys:
		return o.listJSON(dst, p, o.scalarJSON)
	}
	dst, _ = o.scalarJSON(dst, int(p.at))
	return dst
}

func (o *outline) listJSON(dst []byte, p place, element func(dst []byte, at int) ([]byte, int)) []byte {
	dst = append(dst, '[')
	start := len(dst)
	scan.Loose.Elements(o.text, int(p.at), func(at int) (end int, more bool) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst, end = element(dst, at)
		return end, true
	})
	return append(dst, ']')
}

// scalarJSON appends a string, a number, true, false or null.
func (o *outline) scalarJSON(dst []byte, at int) ([]byte, int) {
	end := scan.Skip(o.text, at)
	switch value := o.text[at:end]; {
	case value[0] == '"':
		return appendLiteral(dst, value), end
	case value[0] > '9' || short(value):
		return append(dst, value...), end
	default:
		f, _ := strconv.ParseFloat(string(value), 64) // as it was when it was read
		text, _ := json.Marshal(f)
		return append(dst, text...), end
	}
}

func (o *outline) ruleJSON(dst []byte, at int) ([]byte, int) {
	parts, end := o.ruleParts(at)
	dst = append(dst, '{')
	start := len(dst)
	for i, name := range ruleFields {
		p := parts[i]
		if name != "rule" && p.end-p.at < int32(len(`"a"`)) {
			continue
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), name...), `":`...)
		if p.end == 0 {
			dst = append(dst, `""`...)
			continue
		}
		dst, _ = o.scalarJSON(dst, int(p.at))
	}
	return append(dst, '}'), end
}

// appendName appends a literal that lacks its quotes.
func appendName(dst, name []byte) []byte {
	if isStandardForm(name) {
		return append(append(append(dst, '"'), name...), '"')
	}
	text, _ := json.Marshal(string(name)) // strings always encode
	return append(dst, text...)
}

// appendLiteral appends a string as encoding/json writes it.
func appendLiteral(dst, literal []byte) []byte {
	if isStandardForm(literal[1 : len(literal)-1]) {
		return append(dst, literal...)
	}
	text, _ := json.Marshal(scan.Unquote(literal))
	return append(dst, text...)
}

// isStandardForm reports whether encoding/json would write the quoted text in the same way. It may return false
// although it would.
func isStandardForm(text []byte) bool {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case ownForm[c]:
			i++
		case c == '\\' && i+1 < len(text):
			n := standardEscape(text[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			return false
		}
	}
	return true
}

// ownForm are the bytes that need no escape.
var ownForm = func() (t [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = !bytes.ContainsRune([]byte(`"\<>&`), c)
	}
	return t
}()

// standardEscape returns the length of an escape as encoding/json writes it, or 0.
func standardEscape(text []byte) int {
	switch text[1] {
	case '"', '\\', 'n', 'r', 't':
		return 2
	case 'u':
		if len(text) >= 6 {
			switch string(text[2:6]) {
			case "003c", "003e", "0026":
				return 6
			}
		}
	}
	return 0
}
