package answers

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// protobufForm encodes whole objects of built-in kinds, or the metadata of any, as Protobuf.
type protobufForm struct {
	*View
	size    int                    // of the items of the present list
	large   bool                   // messages are not cached in the items
	held    map[*cache.Item][]byte // messages that were made to determine sizes, of the first items
	holding int                    // bytes in held

	of   reflect.Type // into which items are decoded; nil until needed
	room []byte       // for decompression
}

func (f *protobufForm) codec() protobuf.Codec { return protobuf.Codec{JSON: f.answers.Forms.JSON} }

// key returns the key under which an item caches its message.
func (f *protobufForm) key() cache.FormKey {
	return cache.FormKey{Form: cache.FormProtobuf, For: f.r}
}

// appendMessage appends an item as a message without envelope.
func (f *protobufForm) appendMessage(dst []byte, it *cache.Item) ([]byte, error) {
	if it.Err() != nil {
		return dst, objects.Corrupt(f.r, it)
	}
	if !f.whole(it) {
		raw, err := f.metadataMessage(it)
		return append(dst, raw...), err
	}
	begin := len(dst)
	dst, ok := it.AppendBytes(dst, f.key())
	if !ok {
		var err error
		if dst, err = f.made(dst, it); err != nil {
			return dst[:begin], err
		}
		if objects.Clean(f.r, it) {
			it.NoteSize(len(dst) - begin)
		}
	}
	if f.metadataOnly() {
		return dst[:begin+len(protobuf.Partial(dst[begin:]))], nil // it comes first
	}
	return dst, nil
}

// whole reports whether the message is that of the object, or its beginning.
func (f *protobufForm) whole(it *cache.Item) bool {
	return f.r.Protobuf(nil) && (!f.metadataOnly() || f.r.Storage.FieldAnnotation == "" && objects.Clean(f.r, it))
}

// made appends an item's message, and caches it if there is room.
func (f *protobufForm) made(dst []byte, it *cache.Item) ([]byte, error) {
	if f.large {
		return f.fromJSON(dst, it)
	}
	raw, err := it.Bytes(f.key(), func(it *cache.Item) ([]byte, error) {
		buf := getBuffer()
		defer putBuffer(buf)
		raw, err := f.fromJSON((*buf)[:0], it)
		*buf = raw[:0]
		return append([]byte(nil), raw...), err
	})
	return append(dst, raw...), err
}

// fromJSON appends an item's message, made from its JSON.
func (f *protobufForm) fromJSON(dst []byte, it *cache.Item) ([]byte, error) {
	var data []byte
	if objects.Clean(f.r, it) {
		data = it.PeekIn(&f.room)
	} else {
		var err error
		if data, err = f.json(it); err != nil {
			return dst, err
		}
	}
	if f.of == nil {
		f.of = f.r.GoType()
	}
	return f.codec().AppendFromJSON(dst, func() runtime.Object { return f.r.New() }, f.of, data)
}

// Object implements Form.
func (f *protobufForm) Object(dst []byte, it *cache.Item) ([]byte, error) {
	return f.enveloped(it, func(apiVersion, kind string, raw []byte) []byte {
		return f.codec().AppendObject(dst, apiVersion, kind, raw)
	})
}

// enveloped calls around with an item's message.
func (f *protobufForm) enveloped(it *cache.Item, around func(apiVersion, kind string, raw []byte) []byte) ([]byte, error) {
	buf := getBuffer()
	defer putBuffer(buf)
	raw, err := f.appendMessage((*buf)[:0], it)
	*buf = raw
	if err != nil {
		return nil, err
	}
	apiVersion, kind := f.typeMeta()
	return around(apiVersion, kind, raw), nil
}

// ListHead implements Form.
func (f *protobufForm) ListHead(dst []byte, p *objects.Page) ([]byte, error) {
	l := f.list(p)
	l.Size = f.size
	return f.codec().AppendListHead(dst, l)
}

// Item implements Form.
func (f *protobufForm) Item(dst []byte, it *cache.Item, first bool) (_ []byte, err error) {
	if raw, ok := f.take(it); ok {
		return append(f.codec().AppendItemHead(dst, first, len(raw)), raw...), nil
	}
	if n, ok := f.known(it); ok {
		dst = f.codec().AppendItemHead(dst, first, n)
		begin := len(dst)
		if dst, err = f.appendMessage(dst, it); err == nil && len(dst)-begin != n {
			err = errSize
		}
		return dst, err
	}
	buf := getBuffer()
	defer putBuffer(buf)
	raw, err := f.appendMessage((*buf)[:0], it)
	*buf = raw
	if err != nil {
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
	return f.enveloped(it, func(apiVersion, kind string, raw []byte) []byte {
		return f.codec().AppendEvent(dst, eventType, apiVersion, kind, raw)
	})
}
