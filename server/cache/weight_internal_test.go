package cache

import (
	"testing"
	"unsafe"
)

// TestSizes: a million objects are a million of these, in memory of just their sizes.
func TestSizes(t *testing.T) {
	if item, body, both := unsafe.Sizeof(Item{}), unsafe.Sizeof(body{}), unsafe.Sizeof(itemAndBody{}); item != 64 || body != 48 || both != 112 {
		t.Errorf("an item has %d bytes, a body %d, and both %d", item, body, both)
	}
}
