package answers

import (
	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// Form is a wire form for one request. Its methods append to dst. A Form is for one goroutine at a time.
//
// A list consists of Prepare, ListHead, Item for each item of the page once and in order, and ListTail;
// appended bytes may be written and dropped in between. After Prepare has succeeded, the other methods fail
// only if an object that could be read before cannot be read any more.
type Form interface {
	// Object appends the body of an answer with one object.
	Object(dst []byte, it *cache.Item) ([]byte, error)

	// Prepare computes whatever can fail, so that nothing fails once the answer has begun, and sorts the
	// items for the answer. The rest of the page (objects.Remainder) cannot fail; a form that needs all items
	// gathers it. size is the length of the whole list; below zero if only writing determines it: -1, or
	// minus an estimate.
	Prepare(p *objects.Page) (size int, err error)
	ListHead(dst []byte, p *objects.Page) ([]byte, error)
	// Item appends an item, and the separator before it.
	Item(dst []byte, it *cache.Item, first bool) ([]byte, error)
	// ListTail appends the end of a list and of the answer.
	ListTail(dst []byte, p *objects.Page) []byte

	// Event appends a whole frame of a watch. first means that the watch has sent none yet.
	Event(dst []byte, eventType string, it *cache.Item, first bool) ([]byte, error)
}

// formOf returns the form that a view has negotiated.
func formOf(v *View) Form {
	var f Form
	switch v.as.Type {
	case codecs.Protobuf:
		return &protobufForm{View: v}
	case codecs.CBOR:
		return cborForm{v}
	}
	field := "items"
	switch {
	case v.as.IsTable():
		f, field = newTableForm(v), "rows"
	case v.metadataOnly():
		f = metadataForm{v}
	default:
		f = jsonForm{v}
	}
	if v.as.Type == codecs.YAML {
		return &yamlForm{View: v, of: f, field: field}
	}
	return f
}
