package protobuf

import (
	"encoding/binary"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/codecs/protobuf/transcode"
)

var _ codecs.Streamer = Codec{}

// Tags of the messages that are put together by hand: field number and wire type 2.
const (
	field1 = 1<<3 | 2
	field2 = 2<<3 | 2
	field3 = 3<<3 | 2
	field4 = 4<<3 | 2
)

// appendHead appends the part of the envelope before a message of rawSize bytes.
func appendHead(dst []byte, apiVersion, kind string, rawSize int) []byte {
	dst = append(dst, Prefix...)
	dst = append(dst, field1)
	dst = binary.AppendUvarint(dst, uint64(fieldSize(len(apiVersion))+fieldSize(len(kind))))
	dst = appendString(dst, field1, apiVersion)
	dst = appendString(dst, field2, kind)
	dst = append(dst, field2)
	return binary.AppendUvarint(dst, uint64(rawSize))
}

// appendTail appends the part of the envelope after a message: no content encoding, no content type.
func appendTail(dst []byte) []byte { return append(dst, field3, 0, field4, 0) }

// EnvelopeSize returns the length of an enveloped message of rawSize bytes.
func EnvelopeSize(apiVersion, kind string, rawSize int) int {
	typeMeta := fieldSize(len(apiVersion)) + fieldSize(len(kind))
	return len(Prefix) + fieldSize(typeMeta) + fieldSize(rawSize) + 4
}

// Message implements codecs.Streamer: the message of an object without envelope, and without the fields that
// the view lacks.
func (c Codec) Message(obj runtime.Object) ([]byte, error) {
	raw, err := Marshal(obj)
	if err != nil {
		return nil, err
	}
	if t := reflect.TypeOf(obj); t.Kind() == reflect.Pointer {
		raw = transcode.Without(c.JSON.View(), raw, t.Elem())
	}
	return raw, nil
}

// AppendObject implements codecs.Streamer: a message in its envelope.
func (Codec) AppendObject(dst []byte, apiVersion, kind string, message []byte) []byte {
	dst = appendHead(grow(dst, EnvelopeSize(apiVersion, kind, len(message))), apiVersion, kind, len(message))
	return appendTail(append(dst, message...))
}

// ItemSize implements codecs.Streamer.
func (Codec) ItemSize(size int) int { return fieldSize(size) }

// AppendListHead implements codecs.Streamer. The list is one message, so the head has the size
// of all items.
func (Codec) AppendListHead(dst []byte, l *codecs.List) ([]byte, error) {
	meta := l.Meta
	if meta == nil {
		meta = &metav1.ListMeta{}
	}
	size := meta.Size()
	// No room is made for the items: lists are written in pieces.
	dst = appendHead(dst, l.APIVersion, l.Kind, fieldSize(size)+l.Size)
	dst = append(dst, field1)
	dst = binary.AppendUvarint(dst, uint64(size))
	return tagged.Append(dst, meta)
}

// AppendItemHead implements codecs.Streamer.
func (Codec) AppendItemHead(dst []byte, _ bool, size int) []byte {
	dst = grow(dst, fieldSize(size)) // the item will follow
	dst = append(dst, field2)
	return binary.AppendUvarint(dst, uint64(size))
}

// AppendListTail implements codecs.Streamer.
func (Codec) AppendListTail(dst []byte, _ *codecs.List) []byte { return appendTail(dst) }

// AppendEvent implements codecs.Streamer: four bytes of length and an event with the enveloped
// object.
func (c Codec) AppendEvent(dst []byte, eventType, apiVersion, kind string, message []byte) []byte {
	object := EnvelopeSize(apiVersion, kind, len(message))
	extension := fieldSize(object) // a RawExtension around the envelope
	event := fieldSize(len(eventType)) + fieldSize(extension)
	dst = grow(dst, 4+event)
	dst = binary.BigEndian.AppendUint32(dst, uint32(event))
	dst = appendString(dst, field1, eventType)
	dst = append(dst, field2)
	dst = binary.AppendUvarint(dst, uint64(extension))
	dst = append(dst, field1)
	dst = binary.AppendUvarint(dst, uint64(object))
	return c.AppendObject(dst, apiVersion, kind, message)
}

// Partial returns the part of an object's message that is its PartialObjectMetadata
// message: in every kind the first field is the metadata. It shares raw's bytes.
func Partial(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != field1 {
		return nil
	}
	size, n := binary.Uvarint(raw[1:])
	if n <= 0 || size > uint64(len(raw)-1-n) {
		return nil
	}
	end := 1 + n + int(size)
	return raw[:end:end]
}

func appendString(dst []byte, tag byte, s string) []byte {
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// fieldSize returns the size of a field with a one-byte tag and n bytes of content.
func fieldSize(n int) int {
	size := 2 + n
	for v := uint64(n); v >= 0x80; v >>= 7 {
		size++
	}
	return size
}

func grow(dst []byte, n int) []byte {
	if cap(dst) == 0 {
		return make([]byte, 0, n) // exactly: most results are kept
	}
	return slices.Grow(dst, n)
}
