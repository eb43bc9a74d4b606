package storage_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds/storage"
)

func TestWarnings(t *testing.T) {
	ctx := context.Background()
	class := &storagev1.StorageClass{AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
		{Key: "topology.kubernetes.io/zone"}, {Key: "failure-domain.beta.kubernetes.io/zone"},
	}}}}
	want := []string{`allowedTopologies[0].matchLabelExpressions[1].key: deprecated since v1.17; use "topology.kubernetes.io/zone" instead`}
	if diff := cmp.Diff(want, storage.StorageClass(off).Warnings(ctx, class, nil)); diff != "" {
		t.Error(diff)
	}
	capacity := &storagev1.CSIStorageCapacity{NodeTopology: &metav1.LabelSelector{
		MatchLabels:      map[string]string{"beta.kubernetes.io/arch": "arm", "a": "b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "beta.kubernetes.io/os", Operator: metav1.LabelSelectorOpExists}},
	}}
	want = []string{
		`nodeTopology.matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`,
		`nodeTopology.matchLabels.beta.kubernetes.io/arch: deprecated since v1.14; use "kubernetes.io/arch" instead`,
	}
	if diff := cmp.Diff(want, storage.CSIStorageCapacity.Warnings(ctx, capacity, nil)); diff != "" {
		t.Error(diff)
	}
}
