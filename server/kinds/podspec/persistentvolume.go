package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// DefaultPersistentVolumeSource fills in the source of a PersistentVolume.
func DefaultPersistentVolumeSource(s *corev1.PersistentVolumeSource) {
	defaultHostPath(s.HostPath)
	if s.ISCSI != nil {
		fill(&s.ISCSI.ISCSIInterface, "default")
	}
	if s.RBD != nil {
		defaultRBD(&s.RBD.RBDPool, &s.RBD.RadosUser, &s.RBD.Keyring)
	}
	defaultAzureDisk(s.AzureDisk)
	if s.ScaleIO != nil {
		defaultScaleIO(&s.ScaleIO.StorageMode, &s.ScaleIO.FSType)
	}
}

// ValidatePersistentVolumeSource checks that a PersistentVolume has exactly one source, and that
// source. p is the path of the spec, volume the name of the object.
func ValidatePersistentVolumeSource(s *corev1.PersistentVolumeSpec, volume string, p *field.Path, now bool) field.ErrorList {
	var c checker
	n := 0
	if s.HostPath != nil && c.first(&n, p, "hostPath") {
		c.hostPath(s.HostPath, p.Child("hostPath"))
	}
	if d := s.GCEPersistentDisk; d != nil && c.first(&n, p, "gcePersistentDisk") {
		c.gcePersistentDisk(d, p)
	}
	if d := s.AWSElasticBlockStore; d != nil && c.first(&n, p, "awsElasticBlockStore") {
		c.awsElasticBlockStore(d, p)
	}
	if s.Glusterfs != nil && c.first(&n, p, "glusterfs") {
		c.persistentGlusterfs(s.Glusterfs, p)
	}
	if s.Flocker != nil && c.first(&n, p, "flocker") {
		c.flocker(s.Flocker, p.Child("flocker"))
	}
	if s.NFS != nil && c.first(&n, p, "nfs") {
		c.nfs(s.NFS, p.Child("nfs"))
	}
	if s.RBD != nil && c.first(&n, p, "rbd") {
		c.rbd(s.RBD.CephMonitors, s.RBD.RBDImage, p)
	}
	if s.Quobyte != nil && c.first(&n, p, "quobyte") {
		c.quobyte(s.Quobyte, p.Child("quobyte"))
	}
	if s.CephFS != nil && c.first(&n, p, "cephFS") {
		c.needsSome(p, "cephfs", "monitors", len(s.CephFS.Monitors))
	}
	if s.ISCSI != nil && c.first(&n, p, "iscsi") {
		c.persistentISCSI(s.ISCSI, volume, p.Child("iscsi"))
	}
	if s.Cinder != nil && c.first(&n, p, "cinder") {
		c.needs(p, "cinder", need{"volumeID", s.Cinder.VolumeID})
		if ref := s.Cinder.SecretRef; ref != nil {
			c.needs(p.Child("cinder"), "secretRef", need{"name", ref.Name}, need{"namespace", ref.Namespace})
		}
	}
	if s.FC != nil && c.first(&n, p, "fc") {
		c.fibreChannel(s.FC, p.Child("fc"))
	}
	if s.FlexVolume != nil { // no message about a second source
		n++
		c.flexVolume(s.FlexVolume.Driver, s.FlexVolume.Options, p.Child("flexVolume"))
	}
	if f := s.AzureFile; f != nil && c.first(&n, p, "azureFile") {
		c.needs(p, "azureFile", need{"secretName", f.SecretName}, need{"shareName", f.ShareName})
		c.requiredIf(f.SecretNamespace != nil && *f.SecretNamespace == "", p.Child("azureFile"), "secretNamespace", "")
	}
	if s.VsphereVolume != nil && c.first(&n, p, "vsphereVolume") {
		c.needs(p, "vsphereVolume", need{"volumePath", s.VsphereVolume.VolumePath})
	}
	if s.PhotonPersistentDisk != nil && c.first(&n, p, "photonPersistentDisk") {
		c.needs(p, "photonPersistentDisk", need{"pdID", s.PhotonPersistentDisk.PdID})
	}
	if s.PortworxVolume != nil && c.first(&n, p, "portworxVolume") {
		c.needs(p, "portworxVolume", need{"volumeID", s.PortworxVolume.VolumeID})
	}
	if s.AzureDisk != nil && c.first(&n, p, "azureDisk") {
		c.azureDisk(s.AzureDisk, p.Child("azureDisk"))
	}
	if s.ScaleIO != nil && c.first(&n, p, "scaleIO") {
		c.needs(p, "scaleIO", need{"gateway", s.ScaleIO.Gateway}, need{"system", s.ScaleIO.System}, need{"volumeName", s.ScaleIO.VolumeName})
	}
	if s.Local != nil && c.first(&n, p, "local") {
		c.local(s, p)
	}
	if s.StorageOS != nil && c.first(&n, p, "storageos") {
		c.storageOS(s.StorageOS.VolumeName, s.StorageOS.VolumeNamespace, p.Child("storageos"))
		if ref := s.StorageOS.SecretRef; ref != nil {
			c.needs(p.Child("storageos"), "secretRef", need{"name", ref.Name}, need{"namespace", ref.Namespace})
		}
	}
	if s.CSI != nil && c.first(&n, p, "csi") {
		c.persistentCSI(s.CSI, p.Child("csi"), now)
	}
	c.requiredIf(n == 0, p, "", "must specify a volume type")
	return c.errs
}

// ValidateVolumeNodeAffinity checks on which nodes a volume can be used.
func ValidateVolumeNodeAffinity(a *corev1.VolumeNodeAffinity, p *field.Path) field.ErrorList {
	var c checker
	if a.Required == nil {
		c.required(p.Child("required"), "must specify required node constraints")
	} else {
		c.nodeSelector(a.Required, p.Child("required"))
	}
	return c.errs
}

func (c *checker) persistentGlusterfs(g *corev1.GlusterfsPersistentVolumeSource, p *field.Path) {
	c.needs(p, "glusterfs", need{"endpoints", g.EndpointsName}, need{"path", g.Path})
	switch ns, at := g.EndpointsNamespace, p.Child("glusterfs", "endpointsNamespace"); {
	case ns == nil:
	case *ns == "":
		c.invalid(at, "", "if the endpointnamespace is set, it must be a valid namespace name")
	default:
		c.dnsLabel(at, "", *ns)
	}
}

func (c *checker) persistentISCSI(s *corev1.ISCSIPersistentVolumeSource, volume string, p *field.Path) {
	const badForm = "must be valid format"
	c.requiredIf(s.TargetPortal == "", p, "targetPortal", "")
	invalidIf(c, s.InitiatorName != nil && len(volume)+1+len(s.TargetPortal) > maxISCSIName, p, "targetportal", s.TargetPortal, longISCSIName)
	c.iscsiTarget(s.IQN, s.Lun, (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil, p, badForm)
	c.requiredIf(s.SecretRef != nil && s.SecretRef.Name == "", p.Child("secretRef"), "name", "")
	if s.InitiatorName != nil {
		c.iscsiName(*s.InitiatorName, p, "initiatorname", badForm)
	}
}

// local checks a volume on a node, which has to name the node.
func (c *checker) local(s *corev1.PersistentVolumeSpec, p *field.Path) {
	at := p.Child("local", "path")
	c.requiredIf(s.Local.Path == "", at, "", "")
	c.noBacksteps(at, "", s.Local.Path)
	c.requiredIf(s.NodeAffinity == nil, p, "nodeAffinity", "Local volume requires node affinity")
}

func (c *checker) persistentCSI(s *corev1.CSIPersistentVolumeSource, p *field.Path, now bool) {
	name := rules.DriverName
	if now {
		name = rules.DriverNameSince133
	}
	c.add(name(s.Driver, p.Child("driver"))...)
	c.requiredIf(s.VolumeHandle == "", p, "volumeHandle", "")
	for _, secret := range []struct {
		ref  *corev1.SecretReference
		name string
	}{
		{s.ControllerPublishSecretRef, "controllerPublishSecretRef"},
		{s.ControllerExpandSecretRef, "controllerExpandSecretRef"},
		{s.NodePublishSecretRef, "nodePublishSecretRef"},
		{s.NodeExpandSecretRef, "nodeExpandSecretRef"},
	} {
		if secret.ref != nil {
			c.csiSecretReference(secret.ref, p.Child(secret.name))
		}
	}
}

func (c *checker) csiSecretReference(ref *corev1.SecretReference, p *field.Path) {
	c.requiredThen(ref.Name, p, "name", c.dnsSubdomain)
	c.requiredThen(ref.Namespace, p, "namespace", c.dnsLabel)
}
