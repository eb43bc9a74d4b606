package keys

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"testing"
)

// TestExpand: keys are made as the standard library's HKDF makes them.
func TestExpand(t *testing.T) {
	for _, size := range []int{0, 1, 32, 300} {
		seed, info := bytes.Repeat([]byte{3}, 32), bytes.Repeat([]byte{5}, size)
		want, err := hkdf.Expand(sha256.New, seed, string(info), 32)
		if err != nil {
			t.Fatal(err)
		}
		m := newMaker(seed)
		for range 2 {
			if got := m.expand(info); !bytes.Equal(got[:], want) {
				t.Fatalf("%x, want %x", got, want)
			}
		}
	}
}
