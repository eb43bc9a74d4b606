package answers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// Form is a wire form in which one request sees objects. What it makes is appended to
// dst. A Form is for one goroutine at a time.
//
// A list is made by Prepare, ListHead, Item for each item of the page once and in order,
// and ListTail; what has been appended may be written and dropped in between. Once
// Prepare has succeeded, the others fail only where an object that was read before
// cannot be read any more.
type Form interface {
	// Object appends the body of an answer that is one object.
	Object(dst []byte, it *cache.Item) ([]byte, error)

	// Prepare makes what the items of a page need, so that nothing fails once the answer
	// has begun, and puts them in the order in which they are shown. Of what the page calls its
	// rest nothing can fail; who must know all of it gathers it. size is the length of
	// the whole list. Where only writing it tells, it is less than zero: -1, or minus what it may be.
	Prepare(p *objects.Page) (size int, err error)
	ListHead(dst []byte, p *objects.Page) ([]byte, error)
	// Item appends an item, and what separates it from the one before it.
	Item(dst []byte, it *cache.Item, first bool) ([]byte, error)
	// ListTail appends what ends a list, and the answer.
	ListTail(dst []byte, p *objects.Page) []byte

	// Event appends one whole frame of a watch. first says that the watch has sent none yet.
	Event(dst []byte, eventType string, it *cache.Item, first bool) ([]byte, error)
	// Error appends the frame that ends a watch which has failed.
	Error(dst []byte, st *metav1.Status) ([]byte, error)
}

// formOf is the form that a view was negotiated to have.
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
