package resource_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"

	"github.com/rowlock/rowlock/server/kinds/resource"
	"github.com/rowlock/rowlock/server/release"
)

// TestClaimRights: a service account on the node of the allocation needs less, and no change needs more rights than an
// allocation has devices, before and after it.
func TestClaimRights(t *testing.T) {
	on := func(gate string) bool { return gate != "DRAAdminAccess" }
	rights := resource.Of(release.Oldest, on).Claim.Status.Rights
	claim := func(drivers int, values ...string) *resourcev1beta1.ResourceClaim {
		c := &resourcev1beta1.ResourceClaim{}
		c.Status.Allocation = &resourcev1beta1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}}}
		for i := range drivers {
			c.Status.Devices = append(c.Status.Devices, resourcev1beta1.AllocatedDeviceStatus{Driver: fmt.Sprintf("d%04d", i)})
		}
		return c
	}
	for _, c := range []struct {
		node   string
		values []string
		want   []string
	}{
		{"n1", []string{"n1"}, []string{"associated-node:update", "arbitrary-node:update"}},
		{"n2", []string{"n1"}, []string{"arbitrary-node:update"}},
		{"", []string{"n1"}, []string{"arbitrary-node:update"}},
		{"n1", []string{"n1", "n2"}, []string{"arbitrary-node:update"}},
	} {
		got := rights(claim(1, c.values...), claim(0, c.values...), "update", c.node)
		if len(got) != 1 || cmp.Diff(c.want, got[0].Verbs) != "" || got[0].Names[0] != "d0000" || got[0].Subresource != "driver" {
			t.Errorf("%s of %v: %+v, want %v", c.node, c.values, got, c.want)
		}
	}
	if got := rights(claim(10_000, "n"), claim(0, "n"), "update", ""); len(got) != 64 {
		t.Errorf("%d rights are asked for", len(got))
	}
	if got := rights(claim(5, "n"), claim(5, "n"), "update", ""); len(got) != 0 {
		t.Errorf("no change needs %+v", got)
	}
	if off := resource.Of(release.Oldest, func(string) bool { return false }).Claim; off.Status.Rights != nil {
		t.Error("without the gate, rights are asked for")
	}
}
