package answers

import (
	"bytes"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// jsonForm encodes whole objects as JSON. Bodies end with a newline, which the writer of pretty JSON drops.
type jsonForm struct{ *View }

// Object implements Form.
func (f jsonForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	data, err := f.json(it)
	if err != nil {
		return dst, err
	}
	return append(append(dst, data...), '\n'), nil
}

// weighed is the largest number of items whose sizes are added up before the first is written, if nothing can
// fail: for a hundred thousand that would delay the first byte considerably, and the length of such a list is
// of little use.
const weighed = 4096

// Prepare implements Form. It returns the length, which saves a chunk header for every piece, except for
// pretty JSON.
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
	if len(items) > weighed && p.Intact && f.r.HasGoType() && f.r.Clean(p.Revision, true) {
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

// stored reports whether an item is sent as it is stored, so that its bytes can be appended without
// decompression first.
func (f jsonForm) stored(it *cache.Item) bool { return it.Err() == nil && objects.Clean(f.r, it) }

// storedSize returns the size of such an item in a list.
func (f jsonForm) storedSize(it *cache.Item) int {
	if f.r.AsMaps() {
		return it.Size()
	}
	return len("{") + it.BodySize()
}

// listedSize returns the size of any item in a list.
func (f jsonForm) listedSize(it *cache.Item) (int, error) {
	if f.stored(it) {
		return f.storedSize(it), nil
	}
	brace, data, err := f.listed(it)
	return len(brace) + len(data), err
}

// listed returns an item as a list contains it, if it is not sent as it is stored: items of built-in kinds
// lack kind and apiVersion there, but not their opening brace.
func (f jsonForm) listed(it *cache.Item) (brace string, data []byte, err error) {
	if data, err = f.json(it); err != nil || f.r.AsMaps() {
		return "", data, err
	}
	if rest, ok := withoutTypeMeta(data, f.r.Kind, f.r.APIVersion()); ok {
		return "{", rest, nil
	}
	return "", data, nil
}

// withoutTypeMeta returns an encoded object without the kind and apiVersion at its beginning.
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

// trimLine returns a JSON body without the newline at its end.
func trimLine(data []byte) []byte { return bytes.TrimSuffix(data, []byte{'\n'}) }
