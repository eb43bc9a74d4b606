package answers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// protobufForm is whole objects of built-in kinds, or the metadata of any, as Protobuf.
type protobufForm struct {
	*View
	size   int      // of the items of the list under way
	unkept [][]byte // its items that are still to come, where no item keeps its message
}

func (f *protobufForm) codec() protobuf.Codec { return protobuf.Codec{JSON: f.answers.Forms.JSON} }

// key is that of the message which an item keeps.
func (f *protobufForm) key() cache.FormKey {
	return cache.FormKey{Form: cache.FormProtobuf, For: f.r}
}

// message is an item as a message without envelope. The bytes are shared.
func (f *protobufForm) message(it *cache.Item) ([]byte, error) {
	if it.Corrupt != nil {
		return nil, objects.Corrupt(f.r, it)
	}
	if !f.r.Protobuf(nil) || f.metadataOnly() && (f.r.Storage.FieldAnnotation != "" || !objects.Clean(f.r, it)) {
		return f.metadataMessage(it)
	}
	raw, err := it.Bytes(f.key(), func(it *cache.Item) ([]byte, error) {
		data, err := f.json(it)
		if err != nil {
			return nil, err
		}
		return f.codec().FromJSON(func() runtime.Object { return f.r.New() }, data)
	})
	if err == nil && f.metadataOnly() {
		raw = protobuf.Partial(raw)
	}
	return raw, err
}

// Object implements Form.
func (f *protobufForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	raw, err := f.message(it)
	if err != nil {
		return dst, err
	}
	apiVersion, kind := f.typeMeta()
	return f.codec().AppendObject(dst, apiVersion, kind, raw), nil
}

// Prepare implements Form. The sizes of all items come before them, so each is made first.
func (f *protobufForm) Prepare(p *objects.Page) (int, error) {
	f.size, f.unkept = 0, nil
	for _, it := range p.Items {
		if n, ok := it.BytesSize(f.key()); ok && !f.metadataOnly() {
			f.size += f.codec().ItemSize(n)
			continue
		}
		raw, err := f.message(it)
		if err != nil {
			return 0, err
		}
		if !f.r.Protobuf(nil) {
			f.unkept = append(f.unkept, raw)
		}
		f.size += f.codec().ItemSize(len(raw))
	}
	buf := getBuffer()
	defer putBuffer(buf)
	head, err := f.ListHead((*buf)[:0], p)
	if err != nil {
		return 0, err
	}
	*buf = f.ListTail(head, p)
	return len(*buf) + f.size, nil
}

// ListHead implements Form.
func (f *protobufForm) ListHead(dst []byte, p *objects.Page) ([]byte, error) {
	l := f.list(p)
	l.Size = f.size
	return f.codec().AppendListHead(dst, l)
}

// Item implements Form.
func (f *protobufForm) Item(dst []byte, it *cache.Item, first bool) (_ []byte, err error) {
	var raw []byte
	if len(f.unkept) > 0 {
		raw, f.unkept = f.unkept[0], f.unkept[1:]
	} else if raw, err = f.message(it); err != nil {
		return dst, err
	}
	return append(f.codec().AppendItemHead(dst, first, len(raw)), raw...), nil
}

// ListTail implements Form.
func (f *protobufForm) ListTail(dst []byte, p *objects.Page) []byte {
	return f.codec().AppendListTail(dst, f.list(p))
}

// Event implements Form.
func (f *protobufForm) Event(dst []byte, eventType string, it *cache.Item, _ bool) ([]byte, error) {
	raw, err := f.message(it)
	if err != nil {
		return dst, err
	}
	apiVersion, kind := f.typeMeta()
	return f.codec().AppendEvent(dst, eventType, apiVersion, kind, raw), nil
}

// Error implements Form.
func (f *protobufForm) Error(dst []byte, st *metav1.Status) ([]byte, error) {
	return codecs.AppendError(dst, f.codec(), st)
}
