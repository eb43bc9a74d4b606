package yaml

import (
	"bytes"
	"fmt"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// FromJSON appends the YAML form of a JSON document. One that nests deeper than json.MaxIndent levels stays
// JSON, which is also YAML: in indented lines its size would grow with the square of its depth.
func (c Codec) FromJSON(dst, data []byte) ([]byte, error) {
	if scan.Deeper(data, json.MaxIndent) {
		return append(append(dst, data...), '\n'), nil
	}
	tree := map[string]any{}
	if _, err := c.JSON.Unmarshal(data, &tree, codecs.Ignore); err != nil {
		return dst, err
	}
	out, err := marshal(tree, len(data))
	return append(dst, out...), err
}

// List is a document with a list of many items, made item by item: Head, the result of AppendItem for each,
// and Tail.
type List struct {
	Head, Tail []byte

	codec Codec
}

// NewList begins a document. empty is its JSON with nothing in the list, which is the
// field of that name. At least one item must follow.
func (c Codec) NewList(empty []byte, field string) (*List, error) {
	whole, err := c.FromJSON(nil, empty)
	if err != nil {
		return nil, err
	}
	line := []byte(field + ": []\n")
	at := bytes.Index(whole, append([]byte{'\n'}, line...)) + 1
	tail, found := bytes.CutPrefix(whole[at:], line)
	if !found {
		return nil, fmt.Errorf("a list without %s", field)
	}
	return &List{Head: append(whole[:at:at], field+":\n"...), Tail: tail, codec: c}, nil
}

// AppendItem appends one item, given as JSON, with the indentation that it has in the whole document: items
// are indented like their list.
func (l *List) AppendItem(dst, object []byte) ([]byte, error) {
	if scan.Deeper(object, json.MaxIndent) {
		return append(append(append(dst, "- "...), object...), '\n'), nil
	}
	item := map[string]any{}
	if _, err := l.codec.JSON.Unmarshal(object, &item, codecs.Ignore); err != nil {
		return dst, err
	}
	out, err := marshal([]any{item}, len(object))
	return append(dst, out...), err
}
