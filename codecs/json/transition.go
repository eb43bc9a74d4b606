package json

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
)

// These go once their callers are given a Codec.

func Append(dst []byte, v any) ([]byte, error) { return Codec{}.Append(dst, v) }

func Unmarshal(data []byte, into any, s codecs.Strictness) ([]string, error) {
	return Codec{}.Unmarshal(data, into, s)
}

func Canonical(data []byte, obj runtime.Object) (Identity, bool) { return Codec{}.Canonical(data, obj) }
