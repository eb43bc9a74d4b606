package podspec

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// defaultVolume fills in a volume; one without a source is an empty directory.
func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	defaultFileVolumes(v)
	defaultDiskVolumes(v)
	if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
		DefaultClaimSpec(&v.Ephemeral.VolumeClaimTemplate.Spec)
	}
}

// defaultFileVolumes handles the sources that consist of API objects.
func defaultFileVolumes(v *corev1.Volume) {
	if v.Secret != nil {
		rules.DefaultTo(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		rules.DefaultTo(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		rules.DefaultTo(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardFiles(v.DownwardAPI.Items)
	}
	if v.Projected == nil {
		return
	}
	rules.DefaultTo(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Projected.Sources {
		src := &v.Projected.Sources[i]
		if src.DownwardAPI != nil {
			defaultDownwardFiles(src.DownwardAPI.Items)
		}
		if src.ServiceAccountToken != nil {
			rules.DefaultTo(&src.ServiceAccountToken.ExpirationSeconds, 60*60)
		}
	}
}

func defaultDownwardFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		if files[i].FieldRef != nil {
			defaultFieldRef(files[i].FieldRef)
		}
	}
}

// defaultDiskVolumes handles the sources that name a device or a server.
func defaultDiskVolumes(v *corev1.Volume) {
	defaultHostPath(v.HostPath)
	if v.ISCSI != nil {
		fill(&v.ISCSI.ISCSIInterface, "default")
	}
	if v.RBD != nil {
		defaultRBD(&v.RBD.RBDPool, &v.RBD.RadosUser, &v.RBD.Keyring)
	}
	defaultAzureDisk(v.AzureDisk)
	if v.ScaleIO != nil {
		defaultScaleIO(&v.ScaleIO.StorageMode, &v.ScaleIO.FSType)
	}
}

func defaultHostPath(v *corev1.HostPathVolumeSource) {
	if v != nil {
		rules.DefaultTo(&v.Type, corev1.HostPathUnset)
	}
}

func defaultRBD(pool, user, keyring *string) {
	fill(pool, "rbd")
	fill(user, "admin")
	fill(keyring, "/etc/ceph/keyring")
}

func defaultAzureDisk(d *corev1.AzureDiskVolumeSource) {
	if d != nil {
		rules.DefaultTo(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		rules.DefaultTo(&d.Kind, corev1.AzureSharedBlobDisk)
		rules.DefaultTo(&d.FSType, "ext4")
		rules.DefaultTo(&d.ReadOnly, false)
	}
}

func defaultScaleIO(mode, fsType *string) {
	fill(mode, "ThinProvisioned")
	fill(fsType, "xfs")
}

func fill(s *string, v string) { *s = cmp.Or(*s, v) }

// DefaultClaimSpec fills in the spec of a claim, in a claim and in a template of one.
func DefaultClaimSpec(s *corev1.PersistentVolumeClaimSpec) {
	rules.DefaultTo(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	DefaultResources(s.Resources.Limits)
	DefaultResources(s.Resources.Requests)
}
