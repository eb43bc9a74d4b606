package documents

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestSameTrouble: the failures of several versions have the same text each time, by which they are logged once.
func TestSameTrouble(t *testing.T) {
	failed := map[schema.GroupVersion]error{}
	for i := range 20 {
		failed[schema.GroupVersion{Group: "far.example", Version: fmt.Sprint("v", i)}] = errors.New("no answer")
	}
	first := (&discoveryResult{failed: failed}).bad().Error()
	for range 10 {
		if text := (&discoveryResult{failed: failed}).bad().Error(); text != first {
			t.Fatalf("%s\nthen %s", first, text)
		}
	}
}
