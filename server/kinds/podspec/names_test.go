package podspec_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// FuzzDataKeyFaults compares the faults of keys with those that the library finds.
func FuzzDataKeyFaults(f *testing.F) {
	for _, key := range []string{"", "a", ".a", "..", "..a", "a..", "-._", "A/b", "ä", "a b", "a\n", strings.Repeat("a", 253), strings.Repeat("a", 254)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if got, want := podspec.DataKeyFaults(key), validation.IsConfigMapKey(key); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	})
}
