package verbs

import (
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/cbor"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// cbor is an item as a CBOR map, without kind and API version unless it is a custom
// resource. The bytes are shared.
func (v *view) cbor(it *cache.Item) ([]byte, error) {
	if it.Corrupt != nil {
		return nil, v.corrupt(it)
	}
	if v.partial() {
		data, err := v.appendJSON(nil, it, false)
		if err != nil {
			return nil, err
		}
		return cbor.FromJSON(func() runtime.Object { return &metav1.PartialObjectMetadata{} }, data)
	}
	if v.r.Custom {
		if _, err := v.json(it); err != nil {
			return nil, err // which may pass: nothing of it is kept
		}
	}
	return it.Bytes(cache.FormKey{Form: cache.FormCBOR, For: v.r}, func(it *cache.Item) ([]byte, error) {
		data, err := v.json(it)
		if err != nil || v.r.Custom {
			return fromCustom(data, err)
		}
		return cbor.FromJSON(func() runtime.Object { return v.r.New() }, data)
	})
}

func fromCustom(data []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return cbor.FromJSON(nil, data)
}

// cborTypeMeta is what an item's map is given beside what it holds.
func (v *view) cborTypeMeta() (apiVersion, kind string) {
	if v.r.Custom && !v.partial() {
		return "", ""
	}
	return v.typeMeta()
}

// sendCBOR answers with a list as CBOR.
func (v *view) sendCBOR(c *Call, p *objects.Page) error {
	for _, it := range p.Items {
		if _, err := v.cbor(it); err != nil {
			return err
		}
	}
	return v.sendStream(c, http.StatusOK, func(w io.Writer) error { return v.streamCBOR(w, p) })
}

// streamCBOR writes a list in bounded pieces.
func (v *view) streamCBOR(w io.Writer, p *objects.Page) error {
	buf := getBuffer()
	defer putBuffer(buf)
	apiVersion, kind := v.listMeta()
	dst, err := cbor.AppendListHead((*buf)[:0], apiVersion, kind, p.Meta(), len(p.Items))
	if err != nil {
		return err
	}
	for _, it := range p.Items {
		raw, err := v.cbor(it)
		if err != nil {
			return err
		}
		if dst = append(dst, raw...); len(dst) >= chunk {
			if _, err := w.Write(dst); err != nil {
				return err
			}
			dst = dst[:0]
		}
	}
	_, err = w.Write(dst)
	*buf = dst
	return err
}
