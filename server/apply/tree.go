package apply

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeTree reads a JSON object whose integers stay integers. It reports false for
// anything but a clean document without duplicates.
func decodeTree(text []byte) (map[string]any, bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	if dec.PeekKind() != '{' {
		return nil, false
	}
	tree, ok := decodeNode(dec)
	if !ok || dec.PeekKind() != 0 || dec.InputOffset() < int64(len(bytes.TrimRight(text, " \t\r\n"))) {
		return nil, false
	}
	out, ok := tree.(map[string]any)
	return out, ok
}

func decodeNode(dec *jsontext.Decoder) (any, bool) {
	tok, err := dec.ReadToken()
	if err != nil {
		return nil, false
	}
	switch tok.Kind() {
	case '{':
		out := map[string]any{}
		for dec.PeekKind() != '}' {
			name, err := dec.ReadToken()
			if err != nil {
				return nil, false
			}
			key := name.String()
			value, ok := decodeNode(dec)
			if !ok {
				return nil, false
			}
			out[key] = value
		}
		_, err := dec.ReadToken()
		return out, err == nil
	case '[':
		out := []any{}
		for dec.PeekKind() != ']' {
			value, ok := decodeNode(dec)
			if !ok {
				return nil, false
			}
			out = append(out, value)
		}
		_, err := dec.ReadToken()
		return out, err == nil
	case '"':
		return tok.String(), true
	case '0':
		text := tok.String()
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	case 't', 'f':
		return tok.Bool(), true
	}
	return nil, tok.Kind() == 'n'
}
