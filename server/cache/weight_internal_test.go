package cache

import (
	"testing"
	"unsafe"

	"github.com/rowlock/rowlock/server/cache/packing"
)

// TestSizes: a million objects are a million of these, in memory of just their sizes.
func TestSizes(t *testing.T) {
	if item, body, both := unsafe.Sizeof(Item{}), unsafe.Sizeof(body{}), unsafe.Sizeof(itemAndBody{}); item != 56 || body != 40 || both != 96 {
		t.Errorf("an item has %d bytes, a body %d, and both %d", item, body, both)
	}
	if derived := unsafe.Sizeof(derived{}); derived > 64 {
		t.Errorf("derived values of a body have %d bytes", derived)
	}
	if entry, common := unsafe.Sizeof(entries{}), unsafe.Sizeof(packing.Common{}); entry != 24 || common != 24 {
		t.Errorf("an entry of an index has %d bytes, and what neighbors share has %d", entry, common)
	}
}
