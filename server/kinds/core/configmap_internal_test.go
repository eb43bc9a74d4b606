package core

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FuzzSoundDataKey: a key that is found sound is one to the library.
func FuzzSoundDataKey(f *testing.F) {
	for _, key := range []string{"", "a", ".a", "..", "..a", "a..", "-._", "A/b", "ä", "a b", "a\n", strings.Repeat("a", 253), strings.Repeat("a", 254)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		faults := validation.IsConfigMapKey(key)
		if sound := soundDataKey(key); sound && len(faults) > 0 || !sound && len(faults) == 0 && key[0] != '.' {
			t.Errorf("%q: sound %v, %v", key, sound, faults)
		}
	})
}
