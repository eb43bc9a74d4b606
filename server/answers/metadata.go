package answers

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// metadataOnly reports whether the answer contains only the metadata of objects.
func (v *View) metadataOnly() bool { return v.as.IsPartial() || v.as.IsPartialList() }

// metadataTypeMeta returns the API version and kind of metadata, or with a suffix of its list.
func (v *View) metadataTypeMeta(suffix string) (apiVersion, kind string) {
	return v.as.As.GroupVersion().String(), "PartialObjectMetadata" + suffix
}

// metadataForm encodes the metadata of objects as JSON.
type metadataForm struct{ *View }

// Object implements Form.
func (f metadataForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	dst, err := f.appendMetadata(dst, it)
	return append(dst, '\n'), err
}

// appendMetadata appends an item's PartialObjectMetadata in the version of the form.
func (v *View) appendMetadata(dst []byte, it *cache.Item) ([]byte, error) {
	if it.Err() != nil {
		return dst, objects.Corrupt(v.r, it)
	}
	// The metadata is that of the stored form: it lacks the annotations in which a version of a built-in kind
	// keeps fields that it does not have.
	if objects.Clean(v.r, it) || v.r.HasGoType() && !it.Older() {
		metadata, err := v.shownMetadata(it.Metadata())
		return jsoncodec.AppendMetadata(dst, v.as.As.Version, metadata), err
	}
	// A conversion by a webhook may change metadata.
	data, err := v.json(it)
	if err != nil {
		return dst, err
	}
	return jsoncodec.AppendPartial(dst, v.as.As.Version, data), nil
}

// shownMetadata returns metadata without annotations that replace fields.
func (v *View) shownMetadata(metadata []byte) ([]byte, error) {
	if st := v.r.Storage; st != nil && st.FieldAnnotation != "" && bytes.Contains(metadata, []byte(`"`+st.FieldAnnotation+`"`)) {
		var m metav1.ObjectMeta
		if err := json.Unmarshal(metadata, &m); err != nil {
			return nil, err
		}
		delete(m.Annotations, st.FieldAnnotation)
		return json.Marshal(&m)
	}
	return metadata, nil
}

// Prepare implements Form.
func (f metadataForm) Prepare(p *objects.Page) (int, error) {
	for _, it := range p.Items {
		if it.Err() == nil && objects.Clean(f.r, it) {
			continue
		}
		if _, err := f.json(it); err != nil {
			return 0, err
		}
	}
	return -1, nil
}

// ListHead implements Form.
func (f metadataForm) ListHead(dst []byte, p *objects.Page) ([]byte, error) {
	return f.codec().AppendListHead(dst, f.metadataList(p))
}

// metadataList returns the list without the items. A stock server does not allocate the items of an empty list.
func (v *View) metadataList(p *objects.Page) *codecs.List {
	l := v.list(p)
	l.NoItems = len(p.Items) == 0
	return l
}

// Item implements Form.
func (f metadataForm) Item(dst []byte, it *cache.Item, first bool) ([]byte, error) {
	return f.appendMetadata(f.codec().AppendItemHead(dst, first, 0), it)
}

// ListTail implements Form.
func (f metadataForm) ListTail(dst []byte, p *objects.Page) []byte {
	return append(f.codec().AppendListTail(dst, f.metadataList(p)), '\n')
}

// Event implements Form.
func (f metadataForm) Event(dst []byte, eventType string, it *cache.Item, _ bool) ([]byte, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	data, err := f.appendMetadata((*buf)[:0], it)
	if err != nil {
		return dst, err
	}
	*buf = data
	return f.codec().AppendEvent(dst, eventType, "", "", data), nil
}

// metadataMessage encodes the metadata of an item as a Protobuf message, if it is not part of the object's
// message. It is not cached.
func (f *protobufForm) metadataMessage(it *cache.Item) ([]byte, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	data, err := f.appendMetadata((*buf)[:0], it)
	if err != nil {
		return nil, err
	}
	*buf = data
	return f.codec().PartialFromJSON(data)
}

// metadataMap encodes the metadata of an item as a CBOR map. It is not cached.
func (f cborForm) metadataMap(it *cache.Item) ([]byte, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	data, err := f.appendMetadata((*buf)[:0], it)
	if err != nil {
		return nil, err
	}
	*buf = data
	return f.codec().FromJSON(func() runtime.Object { return &metav1.PartialObjectMetadata{} }, data)
}
