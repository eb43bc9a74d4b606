// Package dictionary compresses small similar values, each by itself, against a dictionary of samples.
//
// A packed value unpacks to the same bytes: Pack verifies that before it returns. Unpacking needs no other value and costs about
// as much as copying. All methods may be called at the same time.
package dictionary

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Bounds of the samples of a dictionary, in bytes.
const (
	most   = s2.MaxDictSize
	sample = 8 << 10 // of one value
)

// Dictionary is a dictionary. It never changes.
type Dictionary struct{ with *s2.Dict }

// New makes a dictionary of copies of the samples, the most typical one last. It returns nil if they are too short.
func New(samples [][]byte) *Dictionary {
	var text []byte
	for _, s := range slices.Backward(samples) {
		s = s[:min(len(s), sample)]
		if len(text)+len(s) > most {
			break
		}
		text = append(slices.Clone(s), text...)
	}
	if len(text) < 1<<10 {
		return nil
	}
	last := samples[len(samples)-1]
	return &Dictionary{with: s2.MakeDict(text, last[:min(len(last), 64)])}
}

// BufferSize returns the size of the buffer that Pack needs for a value of up to size bytes.
func BufferSize(size int) int { return max(0, s2.MaxEncodedLen(size)) + size }

// Pack returns the packed value in room, or nil if packing saves less than a quarter. room must have at least BufferSize(len(value))
// bytes.
func (d *Dictionary) Pack(room, value []byte) []byte {
	if len(value) < 64 || len(room) < BufferSize(len(value)) {
		return nil
	}
	n := s2.MaxEncodedLen(len(value))
	packed := d.with.Encode(room[:n:n], value)
	if len(packed) > len(value)/4*3 {
		return nil
	}
	back, err := d.with.Decode(room[n:n:n+len(value)], packed)
	if err != nil || !bytes.Equal(back, value) {
		return nil
	}
	return packed
}

// Unpack appends the value to dst. It fails for bytes that Pack has not made with this dictionary.
func (d *Dictionary) Unpack(dst, packed []byte) ([]byte, error) {
	size, err := s2.DecodedLen(packed)
	if err != nil {
		return dst, fmt.Errorf("unpacking a value: %w", err)
	}
	at := len(dst)
	dst = slices.Grow(dst, size)
	if _, err = d.with.Decode(dst[at:at:at+size], packed); err != nil {
		return dst[:at], fmt.Errorf("unpacking a value: %w", err)
	}
	return dst[:at+size], nil
}

// Bytes returns the dictionary in the form that Parse reads.
func (d *Dictionary) Bytes() []byte { return d.with.Bytes() }

// Parse makes a dictionary of the result of Bytes. It returns nil if the bytes are invalid.
func Parse(b []byte) *Dictionary {
	with := s2.NewDict(b)
	if with == nil {
		return nil
	}
	return &Dictionary{with: with}
}
