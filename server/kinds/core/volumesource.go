package core

import (
	"net"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// defaultVolumeSource fills in what a source leaves out.
func defaultVolumeSource(s *corev1.PersistentVolumeSource) {
	fill := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	if s.HostPath != nil {
		defaultTo(&s.HostPath.Type, corev1.HostPathUnset)
	}
	if s.ISCSI != nil {
		fill(&s.ISCSI.ISCSIInterface, "default")
	}
	if s.RBD != nil {
		fill(&s.RBD.RBDPool, "rbd")
		fill(&s.RBD.RadosUser, "admin")
		fill(&s.RBD.Keyring, "/etc/ceph/keyring")
	}
	if d := s.AzureDisk; d != nil {
		defaultTo(&d.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		defaultTo(&d.Kind, corev1.AzureSharedBlobDisk)
		defaultTo(&d.FSType, "ext4")
		defaultTo(&d.ReadOnly, false)
	}
	if s.ScaleIO != nil {
		fill(&s.ScaleIO.StorageMode, "ThinProvisioned")
		fill(&s.ScaleIO.FSType, "xfs")
	}
}

// need is the error about a value that must be there.
func need(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// sourceCheck is one kind of volume: its name in the error about a second one,
// whether it is there, and how it is checked.
type sourceCheck struct {
	name  string
	set   bool
	check func() field.ErrorList
}

// validateVolumeSource checks that a volume has exactly one source, and that one. p is
// the path of the spec.
func validateVolumeSource(s *corev1.PersistentVolumeSpec, volume string, p *field.Path) field.ErrorList {
	at := func(names ...string) *field.Path { return p.Child(names[0], names[1:]...) }
	var errs field.ErrorList
	found := false
	for _, c := range []sourceCheck{
		{"hostPath", s.HostPath != nil, func() field.ErrorList { return validateHostPath(s.HostPath, at("hostPath")) }},
		{"gcePersistentDisk", s.GCEPersistentDisk != nil, func() field.ErrorList {
			return append(need(s.GCEPersistentDisk.PDName, at("persistentDisk", "pdName")), partition(s.GCEPersistentDisk.Partition, at("persistentDisk", "partition"))...)
		}},
		{"awsElasticBlockStore", s.AWSElasticBlockStore != nil, func() field.ErrorList {
			return append(need(s.AWSElasticBlockStore.VolumeID, at("awsElasticBlockStore", "volumeID")), partition(s.AWSElasticBlockStore.Partition, at("awsElasticBlockStore", "partition"))...)
		}},
		{"glusterfs", s.Glusterfs != nil, func() field.ErrorList { return validateGlusterfs(s.Glusterfs, at("glusterfs")) }},
		{"flocker", s.Flocker != nil, func() field.ErrorList { return validateFlocker(s.Flocker, at("flocker")) }},
		{"nfs", s.NFS != nil, func() field.ErrorList { return validateNFS(s.NFS, at("nfs")) }},
		{"rbd", s.RBD != nil, func() field.ErrorList {
			return append(needAny(s.RBD.CephMonitors, at("rbd", "monitors")), need(s.RBD.RBDImage, at("rbd", "image"))...)
		}},
		{"quobyte", s.Quobyte != nil, func() field.ErrorList { return validateQuobyte(s.Quobyte, at("quobyte")) }},
		{"cephFS", s.CephFS != nil, func() field.ErrorList { return needAny(s.CephFS.Monitors, at("cephfs", "monitors")) }},
		{"iscsi", s.ISCSI != nil, func() field.ErrorList { return validateISCSI(s.ISCSI, volume, at("iscsi")) }},
		{"cinder", s.Cinder != nil, func() field.ErrorList {
			return append(need(s.Cinder.VolumeID, at("cinder", "volumeID")), secretNamed(s.Cinder.SecretRef, at("cinder", "secretRef"))...)
		}},
		{"fc", s.FC != nil, func() field.ErrorList { return validateFC(s.FC, at("fc")) }},
		{"flexVolume", s.FlexVolume != nil, func() field.ErrorList { return validateFlex(s.FlexVolume, at("flexVolume")) }},
		{"azureFile", s.AzureFile != nil, func() field.ErrorList { return validateAzureFile(s.AzureFile, at("azureFile")) }},
		{"vsphereVolume", s.VsphereVolume != nil, func() field.ErrorList { return need(s.VsphereVolume.VolumePath, at("vsphereVolume", "volumePath")) }},
		{"photonPersistentDisk", s.PhotonPersistentDisk != nil, func() field.ErrorList { return need(s.PhotonPersistentDisk.PdID, at("photonPersistentDisk", "pdID")) }},
		{"portworxVolume", s.PortworxVolume != nil, func() field.ErrorList { return need(s.PortworxVolume.VolumeID, at("portworxVolume", "volumeID")) }},
		{"azureDisk", s.AzureDisk != nil, func() field.ErrorList { return validateAzureDisk(s.AzureDisk, at("azureDisk")) }},
		{"scaleIO", s.ScaleIO != nil, func() field.ErrorList {
			return slices.Concat(need(s.ScaleIO.Gateway, at("scaleIO", "gateway")), need(s.ScaleIO.System, at("scaleIO", "system")), need(s.ScaleIO.VolumeName, at("scaleIO", "volumeName")))
		}},
		{"local", s.Local != nil, func() field.ErrorList { return validateLocal(s, p) }},
		{"storageos", s.StorageOS != nil, func() field.ErrorList { return validateStorageOS(s.StorageOS, at("storageos")) }},
		{"csi", s.CSI != nil, func() field.ErrorList { return validateCSI(s.CSI, at("csi")) }},
	} {
		switch {
		case !c.set:
		case found && c.name != "flexVolume":
			errs = append(errs, field.Forbidden(p.Child(c.name), "may not specify more than 1 volume type"))
		default:
			found = true
			errs = append(errs, c.check()...)
		}
	}
	if !found {
		errs = append(errs, field.Required(p, "must specify a volume type"))
	}
	return errs
}

func needAny(values []string, path *field.Path) field.ErrorList {
	if len(values) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

func partition(n int32, path *field.Path) field.ErrorList {
	if n < 0 || n > 255 {
		return field.ErrorList{field.Invalid(path, n, validation.InclusiveRangeError(1, 255))}
	}
	return nil
}

// secretNamed checks that a reference to a secret, where there is one, is whole.
func secretNamed(ref *corev1.SecretReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	return append(need(ref.Name, path.Child("name")), need(ref.Namespace, path.Child("namespace"))...)
}

// noBacksteps checks that a path does not lead up.
func noBacksteps(p string, path *field.Path) field.ErrorList {
	if slices.Contains(strings.Split(p, "/"), "..") {
		return field.ErrorList{field.Invalid(path, p, "must not contain '..'")}
	}
	return nil
}

func validateHostPath(h *corev1.HostPathVolumeSource, path *field.Path) field.ErrorList {
	if h.Path == "" {
		return field.ErrorList{field.Required(path.Child("path"), "")}
	}
	errs := noBacksteps(h.Path, path.Child("path"))
	if h.Type != nil {
		errs = append(errs, rules.OneOf(*h.Type, path.Child("type"), corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
			corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket)...)
	}
	return errs
}

func validateGlusterfs(g *corev1.GlusterfsPersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := append(need(g.EndpointsName, path.Child("endpoints")), need(g.Path, path.Child("path"))...)
	switch ns := g.EndpointsNamespace; {
	case ns == nil:
	case *ns == "":
		errs = append(errs, field.Invalid(path.Child("endpointsNamespace"), "", "if the endpointnamespace is set, it must be a valid namespace name"))
	default:
		errs = append(errs, rules.Label(*ns, path.Child("endpointsNamespace"))...)
	}
	return errs
}

func validateFlocker(f *corev1.FlockerVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if f.DatasetName == "" && f.DatasetUUID == "" {
		errs = append(errs, field.Required(path, "one of datasetName and datasetUUID is required"))
	}
	if f.DatasetName != "" && f.DatasetUUID != "" {
		errs = append(errs, field.Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(f.DatasetName, "/") {
		errs = append(errs, field.Invalid(path.Child("datasetName"), f.DatasetName, "must not contain '/'"))
	}
	return errs
}

func validateNFS(n *corev1.NFSVolumeSource, p *field.Path) field.ErrorList {
	errs := append(need(n.Server, p.Child("server")), need(n.Path, p.Child("path"))...)
	if !path.IsAbs(n.Path) {
		errs = append(errs, field.Invalid(p.Child("path"), n.Path, "must be an absolute path"))
	}
	return errs
}

func validateQuobyte(q *corev1.QuobyteVolumeSource, path *field.Path) field.ErrorList {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	var errs field.ErrorList
	switch {
	case q.Registry == "":
		errs = append(errs, field.Required(path.Child("registry"), pairs))
	case len(q.Tenant) >= 65:
		errs = append(errs, field.Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	default:
		for pair := range strings.SplitSeq(q.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				errs = append(errs, field.Invalid(path.Child("registry"), q.Registry, pairs))
			}
		}
	}
	return append(errs, need(q.Volume, path.Child("volume"))...)
}

// The forms of names of iSCSI initiators, by their first three letters.
var iscsiNames = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

func iscsiName(name string, path *field.Path) field.ErrorList {
	if len(name) >= 3 {
		if form, ok := iscsiNames[name[:3]]; ok && form.MatchString(name) {
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path, name, "must be valid format")}
}

func validateISCSI(s *corev1.ISCSIPersistentVolumeSource, volume string, path *field.Path) field.ErrorList {
	errs := need(s.TargetPortal, path.Child("targetPortal"))
	if s.InitiatorName != nil && len(volume+":"+s.TargetPortal) > 64 {
		errs = append(errs, field.Invalid(path.Child("targetportal"), s.TargetPortal,
			"Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."))
	}
	if s.IQN == "" {
		errs = append(errs, field.Required(path.Child("iqn"), ""))
	} else {
		errs = append(errs, iscsiName(s.IQN, path.Child("iqn"))...)
	}
	if s.Lun < 0 || s.Lun > 255 {
		errs = append(errs, field.Invalid(path.Child("lun"), s.Lun, validation.InclusiveRangeError(0, 255)))
	}
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		errs = append(errs, field.Required(path.Child("secretRef"), ""))
	}
	if s.SecretRef != nil {
		errs = append(errs, need(s.SecretRef.Name, path.Child("secretRef", "name"))...)
	}
	if s.InitiatorName != nil {
		errs = append(errs, iscsiName(*s.InitiatorName, path.Child("initiatorname"))...)
	}
	return errs
}

func validateFC(s *corev1.FCVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	wwns := path.Child("targetWWNs")
	if len(s.TargetWWNs)+len(s.WWIDs) == 0 {
		errs = append(errs, field.Required(wwns, "must specify either targetWWNs or wwids, but not both"))
	}
	if len(s.TargetWWNs) > 0 && len(s.WWIDs) > 0 {
		errs = append(errs, field.Invalid(wwns, s.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously"))
	}
	switch {
	case len(s.TargetWWNs) == 0:
	case s.Lun == nil:
		errs = append(errs, field.Required(path.Child("lun"), "lun is required if targetWWNs is specified"))
	case *s.Lun < 0 || *s.Lun > 255:
		errs = append(errs, field.Invalid(path.Child("lun"), s.Lun, validation.InclusiveRangeError(0, 255)))
	}
	return errs
}

func validateFlex(s *corev1.FlexPersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := need(s.Driver, path.Child("driver"))
	for _, key := range sorted(s.Options) {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(path.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return errs
}

func validateAzureFile(s *corev1.AzureFilePersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := append(need(s.SecretName, path.Child("secretName")), need(s.ShareName, path.Child("shareName"))...)
	if s.SecretNamespace != nil {
		errs = append(errs, need(*s.SecretNamespace, path.Child("secretNamespace"))...)
	}
	return errs
}

func validateAzureDisk(s *corev1.AzureDiskVolumeSource, path *field.Path) field.ErrorList {
	errs := append(need(s.DiskName, path.Child("diskName")), need(s.DataDiskURI, path.Child("diskURI"))...)
	if s.CachingMode != nil {
		errs = append(errs, rules.OneOf(*s.CachingMode, path.Child("cachingMode"),
			corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite)...)
	}
	if s.Kind == nil {
		return errs
	}
	errs = append(errs, rules.OneOf(*s.Kind, path.Child("kind"), corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk)...)
	prefix, form := "https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
	if *s.Kind == corev1.AzureManagedDisk {
		prefix, form = "/subscriptions/", "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	}
	if !strings.HasPrefix(s.DataDiskURI, prefix) {
		errs = append(errs, field.NotSupported(path.Child("diskURI"), s.DataDiskURI, []string{form}))
	}
	return errs
}

// validateLocal checks a volume on a node, which has to say on which.
func validateLocal(s *corev1.PersistentVolumeSpec, spec *field.Path) field.ErrorList {
	path := spec.Child("local", "path")
	errs := need(s.Local.Path, path)
	if s.Local.Path != "" {
		errs = noBacksteps(s.Local.Path, path)
	}
	if s.NodeAffinity == nil {
		errs = append(errs, field.Required(spec.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	return errs
}

func validateStorageOS(s *corev1.StorageOSPersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := need(s.VolumeName, path.Child("volumeName"))
	if s.VolumeName != "" {
		errs = rules.Label(s.VolumeName, path.Child("volumeName"))
	}
	if s.VolumeNamespace != "" {
		errs = append(errs, rules.Label(s.VolumeNamespace, path.Child("volumeNamespace"))...)
	}
	if s.SecretRef != nil {
		errs = append(errs, need(s.SecretRef.Name, path.Child("secretRef", "name"))...)
		errs = append(errs, need(s.SecretRef.Namespace, path.Child("secretRef", "namespace"))...)
	}
	return errs
}

func validateCSI(s *corev1.CSIPersistentVolumeSource, path *field.Path) field.ErrorList {
	driver := path.Child("driver")
	errs := need(s.Driver, driver)
	if len(s.Driver) > 63 {
		errs = append(errs, field.TooLong(driver, "", 63))
	}
	errs = append(errs, rules.Messages(driver, s.Driver, validation.IsDNS1123Subdomain(strings.ToLower(s.Driver)))...)
	errs = append(errs, need(s.VolumeHandle, path.Child("volumeHandle"))...)
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
			errs = append(errs, validateSecretReference(secret.ref, path.Child(secret.name))...)
		}
	}
	return errs
}

func validateSecretReference(ref *corev1.SecretReference, path *field.Path) field.ErrorList {
	errs := need(ref.Name, path.Child("name"))
	if ref.Name != "" {
		errs = rules.Subdomain(ref.Name, path.Child("name"))
	}
	if ref.Namespace == "" {
		return append(errs, field.Required(path.Child("namespace"), ""))
	}
	return append(errs, rules.Label(ref.Namespace, path.Child("namespace"))...)
}
