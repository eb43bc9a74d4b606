package protobuf

import (
	"encoding/binary"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Tags of the messages that are put together by hand: field number and wire type 2.
const (
	field1 = 1<<3 | 2
	field2 = 2<<3 | 2
	field3 = 3<<3 | 2
	field4 = 4<<3 | 2
)

// AppendEnvelope appends a message in its envelope.
func AppendEnvelope(dst []byte, apiVersion, kind string, raw []byte) []byte {
	dst = AppendHead(dst, apiVersion, kind, len(raw))
	return AppendTail(append(dst, raw...))
}

// AppendHead appends what precedes a message of rawSize bytes in its envelope.
func AppendHead(dst []byte, apiVersion, kind string, rawSize int) []byte {
	return appendHead(grow(dst, EnvelopeSize(apiVersion, kind, rawSize)), apiVersion, kind, rawSize)
}

func appendHead(dst []byte, apiVersion, kind string, rawSize int) []byte {
	dst = append(dst, Prefix...)
	dst = append(dst, field1)
	dst = binary.AppendUvarint(dst, uint64(fieldSize(len(apiVersion))+fieldSize(len(kind))))
	dst = appendString(dst, field1, apiVersion)
	dst = appendString(dst, field2, kind)
	dst = append(dst, field2)
	return binary.AppendUvarint(dst, uint64(rawSize))
}

// AppendTail appends what follows a message in its envelope: no content encoding,
// no content type.
func AppendTail(dst []byte) []byte { return append(dst, field3, 0, field4, 0) }

// EnvelopeSize is the length of an enveloped message of rawSize bytes.
func EnvelopeSize(apiVersion, kind string, rawSize int) int {
	typeMeta := fieldSize(len(apiVersion)) + fieldSize(len(kind))
	return len(Prefix) + fieldSize(typeMeta) + fieldSize(rawSize) + 4
}

// ItemSize is what an item message of rawSize bytes takes in a list.
func ItemSize(rawSize int) int { return fieldSize(rawSize) }

// AppendListHead starts an enveloped list whose items take itemsSize bytes in all
// (the sum of their ItemSize). AppendItem for each and AppendTail must follow.
func AppendListHead(dst []byte, apiVersion, kind string, meta *metav1.ListMeta, itemsSize int) ([]byte, error) {
	size := meta.Size()
	// No room is made for the items: lists are written in pieces.
	dst = appendHead(dst, apiVersion, kind, fieldSize(size)+itemsSize)
	dst = append(dst, field1)
	dst = binary.AppendUvarint(dst, uint64(size))
	return appendMessage(dst, meta, size)
}

// AppendItem appends one item of a list.
func AppendItem(dst, raw []byte) []byte {
	dst = grow(dst, fieldSize(len(raw)))
	dst = append(dst, field2)
	dst = binary.AppendUvarint(dst, uint64(len(raw)))
	return append(dst, raw...)
}

// AppendEvent appends a whole frame of a watch: four bytes of length and an event
// of the given type ("ADDED") with the enveloped object.
func AppendEvent(dst []byte, eventType, apiVersion, kind string, raw []byte) []byte {
	object := EnvelopeSize(apiVersion, kind, len(raw))
	extension := fieldSize(object) // a RawExtension around the envelope
	event := fieldSize(len(eventType)) + fieldSize(extension)
	dst = grow(dst, 4+event)
	dst = binary.BigEndian.AppendUint32(dst, uint32(event))
	dst = appendString(dst, field1, eventType)
	dst = append(dst, field2)
	dst = binary.AppendUvarint(dst, uint64(extension))
	dst = append(dst, field1)
	dst = binary.AppendUvarint(dst, uint64(object))
	return AppendEnvelope(dst, apiVersion, kind, raw)
}

// Partial is the part of an object's message that is its PartialObjectMetadata
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

// fieldSize is the size of a field with a one-byte tag and n bytes of content.
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
