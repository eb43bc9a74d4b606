package builtin_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
)

// TestGatedFields: a field goes where its gates are off, and stays where one is on or the
// old object has it.
func TestGatedFields(t *testing.T) {
	yes, close := true, corev1.ServiceTrafficDistributionPreferClose
	for _, c := range []struct {
		plural string
		gates  []string // each of them is enough
		empty  kinds.Object
		used   kinds.Object
		has    func(kinds.Object) bool
	}{
		{"services", []string{"ServiceTrafficDistribution"}, &corev1.Service{}, &corev1.Service{Spec: corev1.ServiceSpec{TrafficDistribution: &close}},
			func(o kinds.Object) bool { return o.(*corev1.Service).Spec.TrafficDistribution != nil }},
		{"nodes", []string{"SupplementalGroupsPolicy"}, &corev1.Node{}, &corev1.Node{Status: corev1.NodeStatus{Features: &corev1.NodeFeatures{SupplementalGroupsPolicy: &yes}}},
			func(o kinds.Object) bool { return o.(*corev1.Node).Status.Features != nil }},
		{"csidrivers", []string{"SELinuxMountReadWriteOncePod"}, &storagev1.CSIDriver{}, &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{SELinuxMount: &yes}},
			func(o kinds.Object) bool { return o.(*storagev1.CSIDriver).Spec.SELinuxMount != nil }},
		{"endpointslices", []string{"TopologyAwareHints", "ServiceTrafficDistribution"}, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSlice{Endpoints: []discoveryv1.Endpoint{{Hints: &discoveryv1.EndpointHints{}}}},
			func(o kinds.Object) bool { return o.(*discoveryv1.EndpointSlice).Endpoints[0].Hints != nil }},
	} {
		for _, on := range append([]string{"none"}, c.gates...) {
			var strategy *kinds.Strategy
			for _, r := range (builtin.Config{Feature: func(gate string) bool { return gate == on }}).Resources() {
				if r.Plural == c.plural {
					strategy = &r.Storage.Strategy
				}
			}
			made, changed, kept := c.used.DeepCopyObject().(kinds.Object), c.used.DeepCopyObject().(kinds.Object), c.used.DeepCopyObject().(kinds.Object)
			if strategy.PrepareForCreate != nil {
				strategy.PrepareForCreate(context.Background(), made)
			}
			strategy.PrepareForUpdate(context.Background(), changed, c.empty)
			strategy.PrepareForUpdate(context.Background(), kept, c.used)
			want := on != "none"
			// Changes of a node leave its status as it was.
			if c.has(made) != want || c.plural != "nodes" && c.has(changed) != want || !c.has(kept) {
				t.Errorf("%s, gate %s: kept on create %t, on change %t, where it was %t", c.plural, on, c.has(made), c.has(changed), c.has(kept))
			}
		}
	}
}
