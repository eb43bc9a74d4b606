package protobuf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
)

// These go once their callers use codecs.Streamer.

func FromJSON(newObject func() runtime.Object, data []byte) ([]byte, error) {
	return Codec{}.FromJSON(newObject, data)
}

func PartialFromJSON(data []byte) ([]byte, error) { return Codec{}.PartialFromJSON(data) }

func AppendEnvelope(dst []byte, apiVersion, kind string, raw []byte) []byte {
	return Codec{}.AppendObject(dst, apiVersion, kind, raw)
}

func AppendTail(dst []byte) []byte { return appendTail(dst) }

func ItemSize(rawSize int) int { return fieldSize(rawSize) }

func AppendListHead(dst []byte, apiVersion, kind string, meta *metav1.ListMeta, itemsSize int) ([]byte, error) {
	return Codec{}.AppendListHead(dst, &codecs.List{APIVersion: apiVersion, Kind: kind, Meta: meta, Size: itemsSize})
}

func AppendItem(dst, raw []byte) []byte {
	return append(Codec{}.AppendItemHead(dst, false, len(raw)), raw...)
}
