package transfer

import (
	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/server/convert"
)

// oldField is one of the spec of a kind of the past that the Go type which reads its messages does not have.
type oldField struct {
	name    string // in JSON
	value   any    // nil: it is not there
	unknown string // how it is named among the fields that are lost
}

// Numbers of fields in messages.
const (
	rawField        protowire.Number = 2 // of the envelope: the message
	specField       protowire.Number = 2
	generationField protowire.Number = 5 // of the spec of a DaemonSet
	rollbackField   protowire.Number = 8 // of the spec of a Deployment
	revisionField   protowire.Number = 1 // of that
)

// readOld reads the fields of a message that the Go type of apps/v1 does not have. A message that does
// not decode has no answer here.
func readOld(kind schema.GroupVersionKind, value []byte) oldField {
	if gv := kind.GroupVersion().String(); gv != "extensions/v1beta1" && gv != "apps/v1beta1" {
		return oldField{}
	}
	raw, _ := lastField(value[len(protobuf.Prefix):], rawField)
	spec, _ := lastField(raw, specField)
	switch kind.Kind {
	case "DaemonSet":
		f := oldField{name: "templateGeneration", unknown: `unknown field "spec.5"`}
		number, _ := lastField(spec, generationField)
		if generation := varint(number); generation != 0 { // 0 is written too, and means nothing
			f.value = generation
		}
		return f
	case "Deployment":
		f := oldField{name: "rollbackTo", unknown: `unknown field "spec.8"`}
		if to, there := lastField(spec, rollbackField); there {
			revision, _ := lastField(to, revisionField)
			f.value = convert.Object{"revision": varint(revision)}
		}
		return f
	}
	return oldField{}
}

// lastField returns the last field of a number in a message, without its tag and length.
func lastField(message []byte, number protowire.Number) (field []byte, there bool) {
	for len(message) > 0 {
		n, kind, head := protowire.ConsumeTag(message)
		if head < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(n, kind, message[head:])
		if size < 0 {
			break
		}
		if n == number {
			field, there = message[head:head+size], true
			if kind == protowire.BytesType {
				field, _ = protowire.ConsumeBytes(field)
			}
		}
		message = message[head+size:]
	}
	return field, there
}

// varint returns the number in a field; 0 if there is none.
func varint(field []byte) int64 {
	v, n := protowire.ConsumeVarint(field)
	if n < 0 {
		return 0
	}
	return int64(v)
}
