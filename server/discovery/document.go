package discovery

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
)

// document is an object that is made when a form is asked for, and encoded at most once a form.
type document struct {
	obj func() runtime.Object

	mu    sync.Mutex
	forms map[form][]byte
}

type form struct {
	mediaType string
	pretty    bool
}

// plainJSON is the form that nearly everybody asks for.
var plainJSON = form{mediaType: codecs.JSON}

func newDocument(obj runtime.Object) *document {
	return lazyDocument(func() runtime.Object { return obj })
}

func lazyDocument(obj func() runtime.Object) *document {
	return &document{obj: obj, forms: map[form][]byte{}}
}

// bytes is the document as codec encodes it; shared, so not to be changed.
func (d *document) bytes(codec codecs.Codec, pretty bool) ([]byte, error) {
	key := form{mediaType: codec.MediaType(), pretty: pretty}
	d.mu.Lock()
	defer d.mu.Unlock()
	if b, ok := d.forms[key]; ok {
		return b, nil
	}
	b, err := codec.Encode(nil, d.obj())
	if err != nil {
		return nil, fmt.Errorf("encoding a discovery document: %w", err)
	}
	if key.mediaType == codecs.JSON {
		if b, err = finish(b, pretty); err != nil {
			return nil, err
		}
	}
	d.forms[key] = b
	return b, nil
}

// finish ends plain JSON with a newline, or indents it.
func finish(b []byte, pretty bool) ([]byte, error) {
	if !pretty {
		return append(b, '\n'), nil
	}
	indented, err := json.Indent(nil, b)
	if err != nil {
		return nil, fmt.Errorf("indenting a discovery document: %w", err)
	}
	return indented, nil
}
