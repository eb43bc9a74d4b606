// Package codecs holds the contract of the wire forms and the negotiation between
// them; each form is a package below it.
//
// It promises: encoding is deterministic; decoding foreign bytes never panics and
// is bounded in depth and size.
package codecs

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Media types. Parts that clients compare equal a stock server's byte for byte.
const (
	JSON     = "application/json"
	YAML     = "application/yaml"
	Protobuf = "application/vnd.kubernetes.protobuf"
	CBOR     = "application/cbor"
	CBORSeq  = "application/cbor-seq"

	PatchJSON      = "application/json-patch+json"
	PatchMerge     = "application/merge-patch+json"
	PatchStrategic = "application/strategic-merge-patch+json"
	PatchApplyYAML = "application/apply-patch+yaml"
	PatchApplyCBOR = "application/apply-patch+cbor"
)

// Strictness is the treatment of unknown and duplicate fields.
type Strictness uint8

const (
	Ignore Strictness = iota // drop them
	Warn                     // drop them, report them as warnings
	Strict                   // report them; the caller refuses the request
)

// Codec is one wire form. Implementations hold no state and may be shared.
type Codec interface {
	MediaType() string
	// Kind reads only the kind and API version, in exactly the way and with exactly
	// the errors a stock server does. Missing values are empty, not errors.
	Kind(data []byte) (schema.GroupVersionKind, error)
	// Weigh returns an upper bound of the memory of the values in data as an obj: see
	// package budget. It is cheap; call it before anything else reads data of a
	// client. The error means that they are too much for any form.
	Weigh(data []byte, obj runtime.Object) (int64, error)
	// Decode reads data into obj. problems are the unknown and duplicate fields, in
	// the words of a stock server ("unknown field \"spec.foo\""), unless s is Ignore.
	// obj should be a new object; on an error its content is undefined.
	Decode(data []byte, obj runtime.Object, s Strictness) (problems []string, err error)
	// Encode appends the whole object, with its kind and apiVersion as set in it and
	// without a trailing newline.
	Encode(dst []byte, obj runtime.Object) ([]byte, error)
}

// Quick is a Codec with a faster way for most input.
type Quick interface {
	// DecodeClean reads data into obj, an empty object without kind and version, if data
	// has no error and no problem, and the kind and version of
	// obj. On false obj is half filled. Strings of
	// obj may be parts of data, which must not change any more.
	DecodeClean(data []byte, obj runtime.Object) bool
}
