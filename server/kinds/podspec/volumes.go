package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeSet finds the valid volumes of a spec by name.
type volumeSet struct {
	list  []*corev1.Volume
	index map[string]*corev1.Volume // only where there are many
}

const manyVolumes = 16

func (v *volumeSet) add(vol *corev1.Volume) {
	v.list = append(v.list, vol)
	if len(v.list) < manyVolumes {
		return
	}
	if v.index == nil {
		v.index = make(map[string]*corev1.Volume, 2*manyVolumes)
		for _, e := range v.list {
			v.index[e.Name] = e
		}
	}
	v.index[vol.Name] = vol
}

// find returns the volume or nil.
func (v volumeSet) find(name string) *corev1.Volume {
	if v.index != nil {
		return v.index[name]
	}
	for _, e := range v.list {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// volumes checks the volumes and returns those that containers may mount.
func (c *checker) volumes(list []corev1.Volume, p *field.Path) volumeSet {
	var set volumeSet
	if len(list) == 0 {
		return set
	}
	p = p.Child("volumes")
	set.list = make([]*corev1.Volume, 0, len(list))
	created := c.createdClaims(list)
	for i := range list {
		v, before := &list[i], len(c.errs)
		c.volume(v, p.Index(i))
		if v.Name == "" {
			c.required(p.Index(i).Child("name"), "")
		} else if !okLabel(v.Name) {
			c.dnsLabel(p.Index(i), "name", v.Name)
		}
		if set.find(v.Name) != nil {
			c.duplicate(p.Index(i).Child("name"), v.Name)
		}
		if len(c.errs) == before {
			set.add(v)
		}
		if v.PersistentVolumeClaim != nil && created.has(v.PersistentVolumeClaim.ClaimName) {
			c.invalid(p.Index(i).Child("persistentVolumeClaim").Child("claimName"), v.PersistentVolumeClaim.ClaimName,
				"must not reference a PVC that gets created for an ephemeral volume")
		}
	}
	return set
}

// createdClaims returns the claims that will be made for ephemeral volumes of this
// pod. Of a template the names are not known.
func (c *checker) createdClaims(list []corev1.Volume) *nameSet {
	var names nameSet
	for i := range list {
		if c.o.PodName != "" && list[i].Ephemeral != nil {
			names.add(c.o.PodName + "-" + list[i].Name)
		}
	}
	return &names
}

// first counts a source in n and reports whether it is the only one so far.
func (c *checker) first(n *int, p *field.Path, name string) bool {
	c.forbiddenIf(*n > 0, p, name, "may not specify more than 1 volume type")
	*n++
	return *n == 1
}

// volume checks that there is one source, and the source.
func (c *checker) volume(v *corev1.Volume, p *field.Path) {
	n := 0
	if v.EmptyDir != nil {
		n++
		if v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() < 0 {
			c.forbidden(p.Child("emptyDir").Child("sizeLimit"), "SizeLimit field must be a valid resource quantity")
		}
	}
	c.legacyDisks(v, &n, p)
	c.sharedVolumes(v, &n, p)
	c.vendorVolumes(v, &n, p)
	if v.Projected != nil && c.first(&n, p, "projected") {
		c.projected(v.Projected, p.Child("projected"))
	}
	if v.ScaleIO != nil && c.first(&n, p, "scaleIO") {
		c.needs(p, "scaleIO", need{"gateway", v.ScaleIO.Gateway}, need{"system", v.ScaleIO.System}, need{"volumeName", v.ScaleIO.VolumeName})
	}
	if v.CSI != nil && c.first(&n, p, "csi") {
		c.csi(v.CSI, p.Child("csi"))
	}
	if v.Ephemeral != nil && c.first(&n, p, "ephemeral") {
		c.ephemeralVolume(v, p)
	}
	if v.Image != nil && c.first(&n, p, "image") {
		if c.o.Pod && v.Image.Reference == "" {
			c.required(p.Child("image").Child("reference"), "")
		}
		c.pullPolicy(v.Image.PullPolicy, p.Child("image"), "pullPolicy")
	}
	c.requiredIf(n == 0, p, "", "must specify a volume type")
}

// legacyDisks handles the sources up to secrets and NFS, in the order of messages.
func (c *checker) legacyDisks(v *corev1.Volume, n *int, p *field.Path) {
	if v.HostPath != nil && c.first(n, p, "hostPath") {
		c.hostPath(v.HostPath, p.Child("hostPath"))
	}
	if v.GitRepo != nil && c.first(n, p, "gitRepo") {
		c.needs(p, "gitRepo", need{"repository", v.GitRepo.Repository})
		c.descending(p.Child("gitRepo"), "directory", v.GitRepo.Directory)
	}
	if d := v.GCEPersistentDisk; d != nil && c.first(n, p, "gcePersistentDisk") {
		c.gcePersistentDisk(d, p)
	}
	if d := v.AWSElasticBlockStore; d != nil && c.first(n, p, "awsElasticBlockStore") {
		c.awsElasticBlockStore(d, p)
	}
	if v.Secret != nil && c.first(n, p, "secret") {
		c.needs(p, "secret", need{"secretName", v.Secret.SecretName})
		c.fileMode(v.Secret.DefaultMode, p, "secret", "defaultMode")
		c.keysToPaths(v.Secret.Items, p, "secret")
	}
	if v.NFS != nil && c.first(n, p, "nfs") {
		c.nfs(v.NFS, p.Child("nfs"))
	}
	if v.ISCSI != nil {
		if c.first(n, p, "iscsi") {
			c.iscsi(v.ISCSI, p.Child("iscsi"))
		}
		invalidIf(c, v.ISCSI.InitiatorName != nil && len(v.Name)+1+len(v.ISCSI.TargetPortal) > maxISCSIName, p, "name", v.Name, longISCSIName)
	}
}

// sharedVolumes handles the sources from Glusterfs to ConfigMaps.
func (c *checker) sharedVolumes(v *corev1.Volume, n *int, p *field.Path) {
	if v.Glusterfs != nil && c.first(n, p, "glusterfs") {
		c.needs(p, "glusterfs", need{"endpoints", v.Glusterfs.EndpointsName}, need{"path", v.Glusterfs.Path})
	}
	if v.Flocker != nil && c.first(n, p, "flocker") {
		c.flocker(v.Flocker, p.Child("flocker"))
	}
	if v.PersistentVolumeClaim != nil && c.first(n, p, "persistentVolumeClaim") {
		c.needs(p, "persistentVolumeClaim", need{"claimName", v.PersistentVolumeClaim.ClaimName})
	}
	if v.RBD != nil && c.first(n, p, "rbd") {
		c.rbd(v.RBD.CephMonitors, v.RBD.RBDImage, p)
	}
	if d := v.Cinder; d != nil && c.first(n, p, "cinder") {
		c.needs(p, "cinder", need{"volumeID", d.VolumeID})
		if d.SecretRef != nil && d.SecretRef.Name == "" {
			c.required(p.Child("cinder").Child("secretRef", "name"), "")
		}
	}
	if v.CephFS != nil && c.first(n, p, "cephFS") {
		c.needsSome(p, "cephfs", "monitors", len(v.CephFS.Monitors))
	}
	if v.Quobyte != nil && c.first(n, p, "quobyte") {
		c.quobyte(v.Quobyte, p.Child("quobyte"))
	}
	// The name in this message was misspelt once and stayed so.
	if v.DownwardAPI != nil && c.first(n, p, "downwarAPI") {
		c.fileMode(v.DownwardAPI.DefaultMode, p, "downwardAPI", "defaultMode")
		for i := range v.DownwardAPI.Items {
			c.downwardFile(&v.DownwardAPI.Items[i], p.Child("downwardAPI"))
		}
	}
	if v.FC != nil && c.first(n, p, "fc") {
		c.fibreChannel(v.FC, p.Child("fc"))
	}
	if v.FlexVolume != nil && c.first(n, p, "flexVolume") {
		c.flexVolume(v.FlexVolume.Driver, v.FlexVolume.Options, p.Child("flexVolume"))
	}
	if v.ConfigMap != nil && c.first(n, p, "configMap") {
		c.needs(p, "configMap", need{"name", v.ConfigMap.Name})
		c.fileMode(v.ConfigMap.DefaultMode, p, "configMap", "defaultMode")
		c.keysToPaths(v.ConfigMap.Items, p, "configMap")
	}
}

// vendorVolumes handles the sources from Azure to StorageOS.
func (c *checker) vendorVolumes(v *corev1.Volume, n *int, p *field.Path) {
	if v.AzureFile != nil && c.first(n, p, "azureFile") {
		c.needs(p, "azureFile", need{"secretName", v.AzureFile.SecretName}, need{"shareName", v.AzureFile.ShareName})
	}
	if v.VsphereVolume != nil && c.first(n, p, "vsphereVolume") {
		c.needs(p, "vsphereVolume", need{"volumePath", v.VsphereVolume.VolumePath})
	}
	if v.PhotonPersistentDisk != nil && c.first(n, p, "photonPersistentDisk") {
		c.needs(p, "photonPersistentDisk", need{"pdID", v.PhotonPersistentDisk.PdID})
	}
	if v.PortworxVolume != nil && c.first(n, p, "portworxVolume") {
		c.needs(p, "portworxVolume", need{"volumeID", v.PortworxVolume.VolumeID})
	}
	if v.AzureDisk != nil && c.first(n, p, "azureDisk") {
		c.azureDisk(v.AzureDisk, p.Child("azureDisk"))
	}
	if v.StorageOS != nil && c.first(n, p, "storageos") {
		c.storageOS(v.StorageOS.VolumeName, v.StorageOS.VolumeNamespace, p.Child("storageos"))
		c.requiredIf(v.StorageOS.SecretRef != nil && v.StorageOS.SecretRef.Name == "", p.Child("storageos", "secretRef"), "name", "")
	}
}

// need is a field that must not be empty.
type need struct{ name, value string }

func (c *checker) needs(p *field.Path, child string, fields ...need) {
	for _, f := range fields {
		if f.value == "" {
			c.required(p.Child(child).Child(f.name), "")
		}
	}
}

func (c *checker) needsSome(p *field.Path, child, name string, n int) {
	if n == 0 {
		c.required(p.Child(child).Child(name), "")
	}
}
