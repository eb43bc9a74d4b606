// Package dictionary packs small values that resemble each other, each for itself, against
// what some of them have in common.
//
// It promises: what was packed comes back byte for byte (Pack sees to it that it does, before
// it returns); unpacking needs no other value and costs about as much as copying; all
// methods may be called at once.
package dictionary

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// Bounds of what a dictionary is made of, in bytes.
const (
	most   = s2.MaxDictSize
	sample = 8 << 10 // of one value
)

// Dictionary is what values have in common. It never changes.
type Dictionary struct{ with *s2.Dict }

// New makes a dictionary of samples, the most typical one last; nil if they are too short to
// be worth it. The samples are copied.
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

// Room is the buffer that Pack needs for a value of so many bytes, or a shorter one.
func Room(size int) int { return max(0, s2.MaxEncodedLen(size)) + size }

// Pack returns the packed value in a part of room, or nil if packing does not pay: if less
// than a quarter is saved. room has at least Room(len(value)) bytes.
func (d *Dictionary) Pack(room, value []byte) []byte {
	if len(value) < 64 || len(room) < Room(len(value)) {
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

// Unpack appends the value to dst. The error is that of bytes which Pack did not make with
// this dictionary.
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

// Bytes is what Parse makes the same dictionary of.
func (d *Dictionary) Bytes() []byte { return d.with.Bytes() }

// Parse makes a dictionary of what Bytes gave; nil if it did not.
func Parse(b []byte) *Dictionary {
	with := s2.NewDict(b)
	if with == nil {
		return nil
	}
	return &Dictionary{with: with}
}

// Size is how many bytes a packed value says that it has.
func Size(packed []byte) (int, error) { return s2.DecodedLen(packed) }
