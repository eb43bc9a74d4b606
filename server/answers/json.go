package answers

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// jsonForm is whole objects as JSON. Bodies end with a newline, which the writer of
// pretty JSON drops.
type jsonForm struct{ *View }

func (f jsonForm) codec() jsoncodec.Codec { return f.answers.Forms.JSON }

// Object implements Form.
func (f jsonForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	data, err := f.json(it)
	if err != nil {
		return dst, err
	}
	return append(append(dst, data...), '\n'), nil
}

// weighed is how many items of a list are looked at before the first is written, where nothing
// can be wrong with them: of a hundred thousand that would take as long as all the rest until the
// first byte, and of so many nobody gains by knowing the length.
const weighed = 4096

// Prepare implements Form. It sets the length, as a length saves a frame of its own for
// every piece, but not that of pretty JSON.
func (f jsonForm) Prepare(p *objects.Page) (int, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	head, err := f.ListHead((*buf)[:0], p)
	if err != nil {
		return 0, err
	}
	frame := f.ListTail(head, p)
	*buf = frame
	items := p.Items
	if len(items) > weighed && p.Sound && f.r.HasGoType() && f.r.Clean(p.Revision, true) {
		items = items[:weighed]
	}
	size := len(frame) + max(0, len(items)-1) // and the commas
	for _, it := range items {
		n, err := f.listedSize(it)
		if err != nil {
			return 0, err
		}
		size += n
	}
	switch {
	case f.as.Pretty:
		return -1, nil
	case len(items) < p.About():
		return -size / len(items) * p.About(), nil
	}
	return size, nil
}

// ListHead implements Form.
func (f jsonForm) ListHead(dst []byte, p *objects.Page) ([]byte, error) {
	return f.codec().AppendListHead(dst, f.list(p))
}

// Item implements Form.
func (f jsonForm) Item(dst []byte, it *cache.Item, first bool) ([]byte, error) {
	if f.stored(it) {
		dst = f.codec().AppendItemHead(dst, first, f.storedSize(it))
		if f.r.AsMaps() {
			return it.AppendJSON(dst), nil
		}
		return it.AppendBody(append(dst, '{')), nil
	}
	brace, data, err := f.listed(it)
	if err != nil {
		return dst, err
	}
	dst = f.codec().AppendItemHead(dst, first, len(brace)+len(data))
	return append(append(dst, brace...), data...), nil
}

// stored says that an item is shown as it is stored, so that its bytes can be appended
// without being unpacked first.
func (f jsonForm) stored(it *cache.Item) bool { return it.Corrupt == nil && objects.Clean(f.r, it) }

// storedSize is how many bytes such an item has in a list.
func (f jsonForm) storedSize(it *cache.Item) int {
	if f.r.AsMaps() {
		return it.Size()
	}
	return len("{") + it.BodySize()
}

// listedSize is how many bytes any item has there.
func (f jsonForm) listedSize(it *cache.Item) (int, error) {
	if f.stored(it) {
		return f.storedSize(it), nil
	}
	brace, data, err := f.listed(it)
	return len(brace) + len(data), err
}

// listed is an item as it stands in a list where it is not shown as it is stored: those of
// built-in kinds leave out kind and apiVersion there, but not their opening brace.
func (f jsonForm) listed(it *cache.Item) (brace string, data []byte, err error) {
	if data, err = f.json(it); err != nil || f.r.AsMaps() {
		return "", data, err
	}
	if rest, ok := withoutTypeMeta(data, f.r.Kind, f.r.APIVersion()); ok {
		return "{", rest, nil
	}
	return "", data, nil
}

// withoutTypeMeta is an encoded object after the kind and apiVersion that it begins with.
func withoutTypeMeta(data []byte, kind, apiVersion string) ([]byte, bool) {
	for _, part := range [...]string{`{"kind":"`, kind, `","apiVersion":"`, apiVersion, `",`} {
		if len(data) < len(part) || string(data[:len(part)]) != part {
			return nil, false
		}
		data = data[len(part):]
	}
	return data, true
}

// ListTail implements Form.
func (f jsonForm) ListTail(dst []byte, p *objects.Page) []byte {
	return append(f.codec().AppendListTail(dst, f.list(p)), '\n')
}

// Event implements Form.
func (f jsonForm) Event(dst []byte, eventType string, it *cache.Item, _ bool) ([]byte, error) {
	data, err := f.json(it)
	if err != nil {
		return dst, err
	}
	return f.codec().AppendEvent(dst, eventType, "", "", data), nil
}

// Error implements Form.
func (f jsonForm) Error(dst []byte, st *metav1.Status) ([]byte, error) {
	return codecs.AppendError(dst, f.codec(), st)
}

// trimLine is a JSON body without the newline that ends it.
func trimLine(data []byte) []byte { return bytes.TrimSuffix(data, []byte{'\n'}) }
