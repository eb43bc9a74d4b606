package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// DefaultInlineVolume sets the defaults of the spec of a volume inside another object: those of its source.
func DefaultInlineVolume(s *corev1.PersistentVolumeSpec) {
	podspec.DefaultResources(s.Capacity)
	podspec.DefaultPersistentVolumeSource(&s.PersistentVolumeSource)
}

// ValidateInlineVolume checks, at p, the spec of a volume inside another object than a PersistentVolume: it
// names the volume to attach, without access rules. now are the rules of releases after 1.32.
func ValidateInlineVolume(s *corev1.PersistentVolumeSpec, p *field.Path, now bool) field.ErrorList {
	const inline = "in the context of inline volumes"
	var errs field.ErrorList
	refuse := func(when bool, name, text string) {
		if when {
			errs = append(errs, field.Forbidden(p.Child(name), text+" "+inline))
		}
	}
	refuse(s.ClaimRef != nil, "claimRef", "may not be specified")
	refuse(len(s.Capacity) > 0, "capacity", "may not be specified")
	errs = rules.RequiredIf(errs, s.CSI == nil, p.Child("csi"), "has to be specified "+inline)
	errs = rules.RequiredIf(errs, len(s.AccessModes) == 0, p.Child("accessModes"), "")
	errs = append(errs, podspec.ValidateAccessModes(s.AccessModes, p)...)
	refuse(s.PersistentVolumeReclaimPolicy != "" && s.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain,
		"persistentVolumeReclaimPolicy", "may only be Retain")
	refuse(s.NodeAffinity != nil, "nodeAffinity", "may not be specified")
	errs = append(errs, podspec.ValidatePersistentVolumeSource(s, "", p, now)...)
	refuse(s.StorageClassName != "", "storageClassName", "may not be specified")
	refuse(s.VolumeMode != nil && *s.VolumeMode != corev1.PersistentVolumeFilesystem, "volumeMode", "may not specify volumeMode other than Filesystem")
	return errs
}
