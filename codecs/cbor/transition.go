package cbor

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
)

// These go once their callers use codecs.Streamer.

func FromJSON(newObject func() runtime.Object, data []byte) ([]byte, error) {
	return Codec{}.FromJSON(newObject, data)
}

func AppendObject(dst []byte, apiVersion, kind string, raw []byte) []byte {
	return Codec{}.AppendObject(dst, apiVersion, kind, raw)
}

func AppendListHead(dst []byte, apiVersion, kind string, meta *metav1.ListMeta, n int) ([]byte, error) {
	return Codec{}.AppendListHead(dst, &codecs.List{APIVersion: apiVersion, Kind: kind, Meta: meta, Count: n})
}
