package answers

import (
	"errors"

	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// yamlForm converts the JSON of another form to YAML. It converts lists item by item: the YAML encoder needs
// many times the memory of its output.
type yamlForm struct {
	*View
	of    Form
	field string // of a list: the field with its items

	list *yaml.List // the present list; nil for one without items
	json []byte     // an item of it
}

func (f *yamlForm) codec() yaml.Codec { return yaml.Codec{JSON: f.answers.Forms.JSON} }

// Object implements Form.
func (f *yamlForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	data, err := f.of.Object(nil, it)
	if err != nil {
		return dst, err
	}
	return f.codec().FromJSON(dst, trimLine(data))
}

// Prepare implements Form. It returns the length of an empty list, which is made as a whole.
func (f *yamlForm) Prepare(p *objects.Page) (int, error) {
	if _, err := f.of.Prepare(p); err != nil || len(p.Items) > 0 {
		return -1, err
	}
	whole, err := f.ListHead(nil, p)
	return len(whole), err
}

// ListHead implements Form.
func (f *yamlForm) ListHead(dst []byte, p *objects.Page) ([]byte, error) {
	empty, err := f.of.ListHead(nil, p)
	if err != nil {
		return dst, err
	}
	empty = trimLine(f.of.ListTail(empty, p))
	if len(p.Items) == 0 {
		return f.codec().FromJSON(dst, empty)
	}
	if f.list, err = f.codec().NewList(empty, f.field); err != nil {
		return dst, err
	}
	return append(dst, f.list.Head...), nil
}

// Item implements Form.
func (f *yamlForm) Item(dst []byte, it *cache.Item, _ bool) ([]byte, error) {
	var err error
	if f.json, err = f.of.Item(f.json[:0], it, true); err != nil {
		return dst, err
	}
	return f.list.AppendItem(dst, f.json)
}

// ListTail implements Form.
func (f *yamlForm) ListTail(dst []byte, _ *objects.Page) []byte {
	if f.list == nil {
		return dst
	}
	return append(dst, f.list.Tail...)
}

// errNoFrames: no watch negotiates YAML.
var errNoFrames = errors.New("no frames of YAML")

// Event implements Form.
func (f *yamlForm) Event(dst []byte, _ string, _ *cache.Item, _ bool) ([]byte, error) {
	return dst, errNoFrames
}
