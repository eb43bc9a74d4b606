package answers

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// cborForm encodes whole objects, or their metadata, as CBOR.
type cborForm struct{ *View }

func (f cborForm) codec() cbor.Codec { return cbor.Codec{JSON: f.answers.Forms.JSON} }

// item returns an item as a CBOR map, without kind and API version unless it is a custom
// resource. The bytes are shared.
func (f cborForm) item(it *cache.Item) ([]byte, error) {
	if it.Err() != nil {
		return nil, objects.Corrupt(f.r, it)
	}
	if f.metadataOnly() {
		return f.metadataMap(it)
	}
	if f.r.LoadMayFail() {
		if _, err := f.json(it); err != nil {
			return nil, err // a temporary error is not cached
		}
	}
	return it.Bytes(cache.FormKey{Form: cache.FormCBOR, For: f.r}, func(it *cache.Item) ([]byte, error) {
		data, err := f.json(it)
		if err != nil {
			return nil, err
		}
		if !f.r.HasGoType() {
			return f.codec().FromJSON(nil, data)
		}
		return f.codec().FromJSON(func() runtime.Object { return f.r.New() }, data)
	})
}

// typeMeta returns the fields that an item's map gets in addition to its own.
func (f cborForm) typeMeta() (apiVersion, kind string) {
	if !f.r.HasGoType() && !f.metadataOnly() {
		return "", ""
	}
	return f.View.typeMeta()
}

// Object implements Form.
func (f cborForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	raw, err := f.item(it)
	if err != nil {
		return dst, err
	}
	apiVersion, kind := f.typeMeta()
	return f.codec().AppendObject(dst, apiVersion, kind, raw), nil
}

// Prepare implements Form. The head of a list contains the number of items.
func (f cborForm) Prepare(p *objects.Page) (int, error) {
	p.Gather()
	for _, it := range p.Items {
		if _, err := f.item(it); err != nil {
			return 0, err
		}
	}
	return -1, nil
}

// ListHead implements Form.
func (f cborForm) ListHead(dst []byte, p *objects.Page) ([]byte, error) {
	l := f.list(p)
	if f.metadataOnly() {
		l = f.metadataList(p)
	}
	return f.codec().AppendListHead(dst, l)
}

// Item implements Form.
func (f cborForm) Item(dst []byte, it *cache.Item, first bool) ([]byte, error) {
	raw, err := f.item(it)
	if err != nil {
		return dst, err
	}
	dst = f.codec().AppendItemHead(dst, first, len(raw))
	if f.metadataOnly() {
		apiVersion, kind := f.metadataTypeMeta("")
		return f.codec().AppendItem(dst, apiVersion, kind, raw), nil
	}
	return append(dst, raw...), nil
}

// ListTail implements Form.
func (f cborForm) ListTail(dst []byte, p *objects.Page) []byte {
	return f.codec().AppendListTail(dst, f.list(p))
}

// Event implements Form.
func (f cborForm) Event(dst []byte, eventType string, it *cache.Item, _ bool) ([]byte, error) {
	raw, err := f.item(it)
	if err != nil {
		return dst, err
	}
	apiVersion, kind := f.typeMeta()
	return f.codec().AppendEvent(dst, eventType, apiVersion, kind, raw), nil
}
