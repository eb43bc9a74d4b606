package foreign

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNewestIsBounded: keys that are held count, ones that are gone or known already do not.
func TestNewestIsBounded(t *testing.T) {
	n := Newest[int]{most: 1 << 20}
	key := func(i int) []byte { return fmt.Appendf(nil, "/%04d%s", i, strings.Repeat("k", 1024-heldBeside-5)) }
	for i := range 1024 {
		for range 2 {
			if err := n.Set(key(i), i); err != nil {
				t.Fatalf("key %d: %v", i, err)
			}
		}
	}
	if err := n.Set(key(1024), 1024); err == nil || !strings.Contains(err.Error(), "more than 1024 keys") || !strings.Contains(err.Error(), "1 MiB") {
		t.Errorf("a key too many: %v", err)
	}
	n = Newest[int]{most: 1 << 20}
	for i := range 4096 { // each gone before the next
		if err := n.Set(key(i), i); err != nil {
			t.Fatal(err)
		}
		n.Delete(key(i - 1))
	}
	if keys := n.Keys(); !slices.Equal(keys, []string{string(key(4095))}) || n.At(keys[0]) != 4095 {
		t.Errorf("%d keys are left", len(keys))
	}
}
