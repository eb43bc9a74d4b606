package jsonpatch

import (
	stdjson "encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// errDepth is the error of encoding/json for the result, which no decoder would read.
var errDepth = errors.New("exceeded max depth")

// write appends a node as encoding/json would write it. It follows depth opened levels, because moves nest them far deeper than a
// body does, and each takes a part of the stack.
func (n *node) write(dst []byte, b *budget.Budget, depth int) ([]byte, error) {
	if n == nil || n.src == nil {
		return append(dst, "null"...), nil
	}
	if depth == 0 && n.opened != unopened {
		return dst, errDepth
	}
	var err error
	switch n.opened {
	case object:
		dst = append(dst, '{')
		for i, key := range slices.Sorted(maps.Keys(n.members)) {
			if err := b.Spend(1); err != nil {
				return dst, err
			}
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendKey(dst, key)
			if dst, err = n.members[key].write(append(dst, ':'), b, depth-1); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	case array:
		dst = append(dst, '[')
		err = n.elements.all(func(i int, e *node) error {
			if err := b.Spend(1); err != nil {
				return err
			}
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			dst, err = e.write(dst, b, depth-1)
			return err
		})
		return append(dst, ']'), err
	}
	return appendText(dst, n.src.text[n.at:n.end]), nil
}

// appendKey writes the name of a member.
func appendKey(dst []byte, key string) []byte {
	for i := range len(key) {
		if c := key[i]; c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' || c >= 0x80 {
			quoted, _ := stdjson.Marshal(key) // strings always encode
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), key...), '"')
}

const hexDigits = "0123456789abcdef"

// appendText appends JSON text without white space, and with the characters special to HTML escaped.
func appendText(dst, text []byte) []byte {
	from := 0 // start of the text that is not appended yet
	for i := 0; i < len(text); {
		if text[i] == '"' {
			i, _ = scan.String(text, i)
		} else if at := scan.Space(text, i); at > i {
			dst = appendEscaped(dst, text[from:i])
			i, from = at, at
		} else {
			i++
		}
	}
	return appendEscaped(dst, text[from:])
}

// appendEscaped appends a part of JSON text with the characters special to HTML escaped.
func appendEscaped(dst, text []byte) []byte {
	from := 0 // start of the text that is not appended yet
	for i, c := range text {
		switch {
		case c == '<' || c == '>' || c == '&':
			dst = append(append(dst, text[from:i]...), '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			from = i + 1
		case c == 0xe2 && i+2 < len(text) && text[i+1] == 0x80 && text[i+2]&^1 == 0xa8: // U+2028 and U+2029
			dst = append(append(dst, text[from:i]...), '\\', 'u', '2', '0', '2', hexDigits[text[i+2]&15])
			from = i + 3
		}
	}
	return append(dst, text[from:]...)
}

// compact returns the form in which values other than objects and lists are compared.
func (n *node) compact() string {
	if n == nil || n.src == nil {
		return ""
	}
	return string(n.src.text[n.at:n.end])
}
