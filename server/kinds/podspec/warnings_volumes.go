package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (a *adviser) volumes(s *corev1.PodSpec) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.EmptyDir != nil || v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.PersistentVolumeClaim != nil {
			continue
		}
		p, gitRepo := a.spec.Child("volumes").Index(i), "deprecated in v1.11"
		if !a.gitRepo {
			gitRepo += ", and disabled by default in v1.33+"
		}
		for _, old := range [...]struct {
			used          bool
			name, message string
		}{
			{v.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
			{v.GitRepo != nil, "gitRepo", gitRepo},
			{v.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
			{v.Flocker != nil, "flocker", "deprecated in v1.22, non-functional in v1.25+"},
			{v.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Quobyte != nil, "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		} {
			if old.used {
				a.warn(p.Child(old.name), old.message)
			}
		}
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			a.out = append(a.out, ClaimSpecWarnings(&v.Ephemeral.VolumeClaimTemplate.Spec, p.Child("ephemeral").Child("volumeClaimTemplate").Child("spec"))...)
		}
		if v.CephFS != nil {
			a.warn(p.Child("cephfs"), "deprecated in v1.28, non-functional in v1.31+")
		}
		if v.RBD != nil {
			a.warn(p.Child("rbd"), "deprecated in v1.28, non-functional in v1.31+")
		}
	}
}

// ClaimSpecWarnings returns the warnings for the spec of a claim. p is its path.
func ClaimSpecWarnings(s *corev1.PersistentVolumeClaimSpec, p *field.Path) []string {
	var a adviser
	a.wholeByte(s.Resources.Requests, corev1.ResourceStorage, p.Child("resources"), "requests")
	a.wholeByte(s.Resources.Limits, corev1.ResourceStorage, p.Child("resources"), "limits")
	return a.out
}
