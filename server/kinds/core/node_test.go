package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/release"
)

// TestNodeRanges: each range of a node that an update changes is an error, and another number of ranges is one.
func TestNodeRanges(t *testing.T) {
	const changed = `spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`
	strategy := core.Node(gates.New(release.Default).Enabled)
	for name, c := range map[string]struct {
		old, cidrs []string
		want       []string
	}{
		"the first":    {cidrs: []string{"10.0.0.0/24", "fd00::/64"}},
		"the same":     {old: []string{"10.0.0.0/24", "fd00::/64"}, cidrs: []string{"10.0.0.0/24", "fd00::/64"}},
		"another":      {old: []string{"10.0.0.0/24", "fd00::/64"}, cidrs: []string{"10.0.0.0/24", "fd00:1::/64"}, want: []string{changed}},
		"both":         {old: []string{"10.0.0.0/24", "fd00::/64"}, cidrs: []string{"10.0.1.0/24", "fd00:1::/64"}, want: []string{changed, changed}},
		"one more":     {old: []string{"10.0.0.0/24"}, cidrs: []string{"10.0.1.0/24", "fd00::/64"}, want: []string{changed}},
		"none anymore": {old: []string{"10.0.0.0/24", "fd00::/64"}, want: []string{changed}},
	} {
		t.Run(name, func(t *testing.T) {
			n, old := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: c.cidrs}}, &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: c.old}}
			var got []string
			for _, err := range strategy.ValidateUpdate(t.Context(), n, old) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
