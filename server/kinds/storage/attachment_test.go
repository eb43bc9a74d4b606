package storage_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/rowlock/rowlock/server/kinds/storage"
)

func TestInlineVolumes(t *testing.T) {
	rwo := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	csi := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}
	at := "spec.source.inlineVolumeSpec"
	for _, c := range []struct {
		name string
		spec corev1.PersistentVolumeSpec
		want []string
	}{
		{"plain", corev1.PersistentVolumeSpec{AccessModes: rwo, PersistentVolumeSource: csi, VolumeMode: new(corev1.PersistentVolumeFilesystem), PersistentVolumeReclaimPolicy: "Retain"}, nil},
		{"nothing", corev1.PersistentVolumeSpec{}, []string{
			at + ".csi: Required value: has to be specified in the context of inline volumes",
			at + ".accessModes: Required value",
			at + ": Required value: must specify a volume type",
		}},
		{"what claims ask for", corev1.PersistentVolumeSpec{
			AccessModes: rwo, PersistentVolumeSource: csi, ClaimRef: &corev1.ObjectReference{}, Capacity: corev1.ResourceList{"storage": {}}, StorageClassName: "s",
			PersistentVolumeReclaimPolicy: "Delete", NodeAffinity: &corev1.VolumeNodeAffinity{}, VolumeMode: new(corev1.PersistentVolumeBlock),
		}, []string{
			at + ".claimRef: Forbidden: may not be specified in the context of inline volumes",
			at + ".capacity: Forbidden: may not be specified in the context of inline volumes",
			at + ".persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes",
			at + ".nodeAffinity: Forbidden: may not be specified in the context of inline volumes",
			at + ".storageClassName: Forbidden: may not be specified in the context of inline volumes",
			at + ".volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes",
		}},
		{"another source", corev1.PersistentVolumeSpec{AccessModes: rwo, PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/x"}}}, []string{
			at + ".csi: Required value: has to be specified in the context of inline volumes",
			at + ".nodeAffinity: Required value: Local volume requires node affinity",
		}},
	} {
		a := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "d", NodeName: "n", Source: storagev1.VolumeAttachmentSource{InlineVolumeSpec: &c.spec},
		}}
		storage.VolumeAttachment(off).Default(a)
		var got []string
		for _, err := range storage.VolumeAttachment(off).Validate(context.Background(), a) {
			got = append(got, err.Error())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// off enables no gate, in release 1.32.
func off(string) bool { return false }
