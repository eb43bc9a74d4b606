package node_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	nodev1 "k8s.io/api/node/v1"

	"github.com/rowlock/rowlock/server/kinds/node"
)

func TestWarnings(t *testing.T) {
	class := &nodev1.RuntimeClass{}
	if got := node.RuntimeClass(off).Warnings(context.Background(), class, nil); got != nil {
		t.Error(got)
	}
	class.Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "arm"}}
	want := []string{`scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead`}
	if diff := cmp.Diff(want, node.RuntimeClass(off).Warnings(context.Background(), class, nil)); diff != "" {
		t.Error(diff)
	}
}

// off enables no gate, in release 1.32.
func off(string) bool { return false }
