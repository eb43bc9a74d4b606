package etcd

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one of a message, as it is read.
type field struct {
	number protowire.Number
	kind   protowire.Type
	varint uint64
	text   []byte
	wrong  *error
}

// fields calls do for the numbers and texts of a message, in order. A field of another wire type than do
// expects is an error, even if do continues.
func fields(b []byte, do func(field)) error {
	var wrong error
	for len(b) > 0 && wrong == nil {
		f := field{wrong: &wrong}
		var n int
		if f.number, f.kind, n = protowire.ConsumeTag(b); n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch f.kind {
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			f.text, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(f.number, f.kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		do(f)
	}
	return wrong
}

func (f field) int() int64 {
	f.expect(protowire.VarintType)
	return int64(f.varint)
}

func (f field) bytes() []byte {
	f.expect(protowire.BytesType)
	return f.text
}

func (f field) expect(kind protowire.Type) {
	if f.kind != kind && *f.wrong == nil {
		*f.wrong = fmt.Errorf("field %d is of wire type %d, not %d", f.number, f.kind, kind)
	}
}

// appendBytes appends a text; an empty one is nothing.
func appendBytes(b []byte, number protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

// appendNumber appends a number; 0 is nothing.
func appendNumber(b []byte, number protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
}
