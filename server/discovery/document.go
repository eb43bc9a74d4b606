package discovery

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/framing"
	"github.com/rowlock/rowlock/codecs/json"
)

// document is an object that is built at the first request for a form, and encoded at most once for each form.
type document struct {
	obj func() runtime.Object

	mu     sync.Mutex
	forms  map[form][]byte
	packed map[form][]byte // the same, compressed, for the forms that clients requested compressed
}

type form struct {
	mediaType string
	pretty    bool
}

// plainJSON is the form that nearly all clients request.
var plainJSON = form{mediaType: codecs.JSON}

func newDocument(obj runtime.Object) *document {
	return lazyDocument(func() runtime.Object { return obj })
}

func lazyDocument(obj func() runtime.Object) *document {
	return &document{obj: obj}
}

// keep stores a form. Most documents are never requested, so the maps are allocated late.
func keep(forms *map[form][]byte, key form, b []byte) {
	if *forms == nil {
		*forms = map[form][]byte{}
	}
	(*forms)[key] = b
}

// bytes returns the document as codec encodes it; shared, so not to be changed.
func (d *document) bytes(codec codecs.Codec, pretty bool) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.encoded(codec, form{mediaType: codec.MediaType(), pretty: pretty})
}

// zipped returns the same compressed with gzip. It is made once, as the document itself is: the
// aggregated document of a thousand definitions is 1 MB, in 64 frames of HTTP/2, each of which
// waits for a processor where all are busy.
func (d *document) zipped(codec codecs.Codec, pretty bool) ([]byte, error) {
	key := form{mediaType: codec.MediaType(), pretty: pretty}
	d.mu.Lock()
	defer d.mu.Unlock()
	if b, ok := d.packed[key]; ok {
		return b, nil
	}
	b, err := d.encoded(codec, key)
	if err == nil {
		b, err = framing.Packed(b)
	}
	if err != nil {
		return nil, fmt.Errorf("compressing a discovery document: %w", err)
	}
	keep(&d.packed, key, b)
	return b, nil
}

// asZipped makes the compressed form of d right away if that of its predecessor was requested.
func (d *document) asZipped(before *document) error {
	before.mu.Lock()
	_, asked := before.packed[plainJSON]
	before.mu.Unlock()
	text, made := d.forms[plainJSON]
	if !asked || !made {
		return nil
	}
	b, err := framing.Packed(text)
	if err != nil {
		return fmt.Errorf("compressing a discovery document: %w", err)
	}
	keep(&d.packed, plainJSON, b)
	return nil
}

// encoded returns one form of the document. The caller holds mu.
func (d *document) encoded(codec codecs.Codec, key form) ([]byte, error) {
	if b, ok := d.forms[key]; ok {
		return b, nil
	}
	b, err := codec.Encode(nil, d.obj())
	if err != nil {
		return nil, fmt.Errorf("encoding a discovery document: %w", err)
	}
	if key.mediaType == codecs.JSON {
		if b, err = finish(b, key.pretty); err != nil {
			return nil, err
		}
	}
	keep(&d.forms, key, b)
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
