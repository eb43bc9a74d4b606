package cbor

import (
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/codecs"
)

var _ codecs.Streamer = Codec{}

// selfDescribed marks a data item as CBOR.
var selfDescribed = []byte{0xd9, 0xd9, 0xf7}

const (
	byteString = 0x40 // strings go out as byte strings, which need no validation
	array      = 0x80
	object     = 0xa0
)

// AppendObject implements codecs.Streamer: a message, marked as CBOR, with its kind and API version
// unless these are empty.
func (Codec) AppendObject(dst []byte, apiVersion, kind string, message []byte) []byte {
	dst = append(dst, selfDescribed...)
	return appendTyped(dst, apiVersion, kind, message)
}

// AppendItem appends the message of an item of a list, with its kind and API version unless these are empty.
func (Codec) AppendItem(dst []byte, apiVersion, kind string, message []byte) []byte {
	return appendTyped(dst, apiVersion, kind, message)
}

// appendTyped puts kind and API version before or behind the other members, by chance:
// docs/design/openapi.md.
func appendTyped(dst []byte, apiVersion, kind string, raw []byte) []byte {
	n, head := mapHead(raw)
	if head == 0 {
		return append(dst, raw...)
	}
	if kind == "" {
		return appendReordered(dst, raw, n, head)
	}
	dst = appendHead(dst, object, n+2)
	if coin() {
		dst = appendTypeMeta(dst, kind, apiVersion)
		return append(dst, raw[head:]...)
	}
	dst = append(dst, raw[head:]...)
	return appendTypeMeta(dst, kind, apiVersion)
}

// appendReordered appends a map whose first member may have become its last.
func appendReordered(dst, raw []byte, members uint64, head int) []byte {
	dst = append(dst, raw[:head]...)
	if members < 2 || coin() {
		return append(dst, raw[head:]...)
	}
	first := head + span(raw[head:], 2)
	dst = append(dst, raw[first:]...)
	return append(dst, raw[head:first]...)
}

// appendTypeMeta appends the kind and the API version, in random order.
func appendTypeMeta(dst []byte, kind, apiVersion string) []byte {
	pairs := [...]string{"kind", kind, "apiVersion", apiVersion}
	if coin() {
		pairs = [...]string{"apiVersion", apiVersion, "kind", kind}
	}
	for _, s := range pairs {
		dst = appendString(dst, s)
	}
	return dst
}

// coin returns true or false at random. Any source of randomness will do.
func coin() bool { return rand.Uint32()&1 == 0 }

// AppendListHead implements codecs.Streamer.
func (Codec) AppendListHead(dst []byte, l *codecs.List) ([]byte, error) {
	meta := l.Meta
	if meta == nil {
		meta = &metav1.ListMeta{}
	}
	encoded, err := marshal(meta)
	if err != nil {
		return dst, err
	}
	dst = append(dst, selfDescribed...)
	dst = appendHead(dst, object, 4)
	dst = appendTypeMeta(dst, l.Kind, l.APIVersion)
	dst = appendString(dst, "metadata")
	if n, head := mapHead(encoded); l.Custom && meta.Continue == "" {
		dst = appendString(appendString(appendHead(dst, object, n+1), "continue"), "")
		encoded = encoded[head:]
	}
	dst = append(dst, encoded...)
	dst = appendString(dst, "items")
	if l.NoItems {
		return append(dst, null), nil
	}
	return appendHead(dst, array, uint64(l.Count)), nil
}

// AppendItemHead implements codecs.Streamer: there is no separator.
func (Codec) AppendItemHead(dst []byte, _ bool, _ int) []byte { return dst }

// ItemSize implements codecs.Streamer.
func (Codec) ItemSize(size int) int { return size }

// AppendListTail implements codecs.Streamer: the head has the number of items.
func (Codec) AppendListTail(dst []byte, _ *codecs.List) []byte { return dst }

// AppendEvent implements codecs.Streamer: one data item of a sequence.
func (c Codec) AppendEvent(dst []byte, eventType, apiVersion, kind string, message []byte) []byte {
	dst = append(dst, selfDescribed...)
	dst = appendHead(dst, object, 2)
	typeFirst := coin()
	if typeFirst {
		dst = appendString(appendString(dst, "type"), eventType)
	}
	dst = c.AppendObject(appendString(dst, "object"), apiVersion, kind, message)
	if !typeFirst {
		dst = appendString(appendString(dst, "type"), eventType)
	}
	return dst
}

func appendString(dst []byte, s string) []byte {
	return append(appendHead(dst, byteString, uint64(len(s))), s...)
}

// appendHead appends the shortest head of a major type with its count.
func appendHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= 0xff:
		return append(dst, major|24, byte(n))
	case n <= 0xffff:
		return append(dst, major|25, byte(n>>8), byte(n))
	}
	return append(dst, major|26, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// mapHead reads the head of a map: the number of pairs and the length of the head, 0 if raw does not start
// with one of the encoder.
func mapHead(raw []byte) (pairs uint64, size int) {
	if len(raw) == 0 || raw[0]&0xe0 != object {
		return 0, 0
	}
	switch n := raw[0] & 0x1f; {
	case n < 24:
		return uint64(n), 1
	case n == 24 && len(raw) >= 2:
		return uint64(raw[1]), 2
	case n == 25 && len(raw) >= 3:
		return uint64(raw[1])<<8 | uint64(raw[2]), 3
	}
	return 0, 0
}
