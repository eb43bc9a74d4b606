package serve

import (
	"strings"
	"testing"
)

func TestEmulatedVersion(t *testing.T) {
	for text, want := range map[string]string{
		"1.32": "", "v1.32.6": "", "kube=1.32": "", "kube=1.31": "emulates no other", "1.33": "emulates no other", "etcd=3.5": "component not registered: etcd",
	} {
		err := emulated([]string{text})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
