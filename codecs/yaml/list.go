package yaml

import (
	"bytes"
	"fmt"
	"io"

	goyaml "sigs.k8s.io/yaml/goyaml.v2"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
)

// FromJSON appends the YAML form of a JSON document. One that nests deeper than
// json.MaxIndent levels stays JSON, which is YAML too: in indented lines its size would
// grow with the square of its depth.
func (c Codec) FromJSON(dst, data []byte) ([]byte, error) {
	if json.Deeper(data, json.MaxIndent) {
		return append(append(dst, data...), '\n'), nil
	}
	tree := map[string]any{}
	if _, err := c.JSON.Unmarshal(data, &tree, codecs.Ignore); err != nil {
		return dst, err
	}
	out, err := goyaml.Marshal(tree)
	return append(dst, out...), err
}

// List writes a document with a list of many items, piece by piece.
type List struct {
	codec Codec
	w     io.Writer
	tail  []byte
	buf   []byte
}

// NewList begins a document. empty is its JSON with nothing in the list, which is the
// field of that name. Items and a Close must follow.
func (c Codec) NewList(w io.Writer, empty []byte, field string) (*List, error) {
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
	l := &List{codec: c, w: w, tail: tail}
	l.buf = append(append(l.buf, whole[:at]...), field+":\n"...)
	return l, nil
}

// Item writes one item, which comes as JSON. It reads as it would in the whole document:
// the items of a list stand as far to the left as the list does.
func (l *List) Item(object []byte) error {
	if json.Deeper(object, json.MaxIndent) {
		l.buf = append(append(append(l.buf, "- "...), object...), '\n')
	} else {
		item := map[string]any{}
		if _, err := l.codec.JSON.Unmarshal(object, &item, codecs.Ignore); err != nil {
			return err
		}
		out, err := goyaml.Marshal([]any{item})
		if err != nil {
			return err
		}
		l.buf = append(l.buf, out...)
	}
	if len(l.buf) < 64<<10 {
		return nil
	}
	return l.flush()
}

func (l *List) flush() error {
	_, err := l.w.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// Close ends the document.
func (l *List) Close() error {
	l.buf = append(l.buf, l.tail...)
	return l.flush()
}
