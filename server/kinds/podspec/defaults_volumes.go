package podspec

import corev1 "k8s.io/api/core/v1"

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

// defaultFileVolumes handles the sources that are made of API objects.
func defaultFileVolumes(v *corev1.Volume) {
	if v.Secret != nil {
		setDefault(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if v.ConfigMap != nil {
		setDefault(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if v.DownwardAPI != nil {
		setDefault(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardFiles(v.DownwardAPI.Items)
	}
	if v.Projected == nil {
		return
	}
	setDefault(&v.Projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range v.Projected.Sources {
		src := &v.Projected.Sources[i]
		if src.DownwardAPI != nil {
			defaultDownwardFiles(src.DownwardAPI.Items)
		}
		if src.ServiceAccountToken != nil {
			setDefault(&src.ServiceAccountToken.ExpirationSeconds, 60*60)
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
	if v.HostPath != nil {
		setDefault(&v.HostPath.Type, corev1.HostPathUnset)
	}
	if v.ISCSI != nil && v.ISCSI.ISCSIInterface == "" {
		v.ISCSI.ISCSIInterface = "default"
	}
	if rbd := v.RBD; rbd != nil {
		fill(&rbd.RBDPool, "rbd")
		fill(&rbd.RadosUser, "admin")
		fill(&rbd.Keyring, "/etc/ceph/keyring")
	}
	if d := v.AzureDisk; d != nil {
		setDefault(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setDefault(&d.Kind, corev1.AzureSharedBlobDisk)
		setDefault(&d.FSType, "ext4")
		setDefault(&d.ReadOnly, false)
	}
	if v.ScaleIO != nil {
		fill(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fill(&v.ScaleIO.FSType, "xfs")
	}
}

func fill(s *string, v string) {
	if *s == "" {
		*s = v
	}
}

// DefaultClaimSpec fills in the spec of a claim, in a claim and in a template of one.
func DefaultClaimSpec(s *corev1.PersistentVolumeClaimSpec) {
	setDefault(&s.VolumeMode, corev1.PersistentVolumeFilesystem)
	DefaultResources(s.Resources.Limits)
	DefaultResources(s.Resources.Requests)
}
