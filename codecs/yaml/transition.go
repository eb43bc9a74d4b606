package yaml

import "io"

// These go once their callers are given a Codec.

func FromJSON(dst, data []byte) ([]byte, error) { return Codec{}.FromJSON(dst, data) }

func NewList(w io.Writer, empty []byte, field string) (*List, error) {
	return Codec{}.NewList(w, empty, field)
}
