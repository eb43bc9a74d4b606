package podspec

import (
	"net"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	hostPathTypes = []corev1.HostPathType{
		corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
		corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket,
	}
	cachingModes = []corev1.AzureDataDiskCachingMode{corev1.AzureDataDiskCachingNone, corev1.AzureDataDiskCachingReadOnly, corev1.AzureDataDiskCachingReadWrite}
	diskKinds    = []corev1.AzureDataDiskKind{corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk}

	// iscsiNames are the forms of initiator names, by prefix.
	iscsiNames = map[string]*regexp.Regexp{
		"iqn": regexp.MustCompile(`iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
		"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
		"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
	}
)

func (c *checker) hostPath(v *corev1.HostPathVolumeSource, p *field.Path) {
	if v.Path == "" {
		c.required(p.Child("path"), "")
		return
	}
	c.noBacksteps(p, "path", v.Path)
	if v.Type != nil {
		oneOf(c, p, "type", *v.Type, hostPathTypes)
	}
}

func (c *checker) partition(p *field.Path, n int32) {
	if n < 0 || n > 255 {
		c.invalid(p.Child("partition"), n, utilvalidation.InclusiveRangeError(1, 255))
	}
}

func (c *checker) fileMode(m *int32, p *field.Path, source, child string) {
	if m != nil && (*m < 0 || *m > 0o777) {
		c.invalid(at(p, source).Child(child), *m, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

func (c *checker) keysToPaths(items []corev1.KeyToPath, p *field.Path, source string) {
	for i := range items {
		c.keyToPath(&items[i], p.Child(source).Child("items").Index(i))
	}
}

func (c *checker) keyToPath(k *corev1.KeyToPath, p *field.Path) {
	c.requiredIf(k.Key == "", p, "key", "")
	c.requiredIf(k.Path == "", p, "path", "")
	c.localPath(p, "path", k.Path)
	c.fileMode(k.Mode, p, "", "mode")
}

func (c *checker) nfs(v *corev1.NFSVolumeSource, p *field.Path) {
	c.requiredIf(v.Server == "", p, "server", "")
	c.requiredIf(v.Path == "", p, "path", "")
	invalidIf(c, !path.IsAbs(v.Path), p, "path", v.Path, "must be an absolute path")
}

// maxISCSIName bounds the name of a volume and its portal together.
const (
	maxISCSIName  = 64
	longISCSIName = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified."
)

func (c *checker) iscsi(v *corev1.ISCSIVolumeSource, p *field.Path) {
	const badForm = "must be valid format starting with iqn, eui, or naa"
	c.requiredIf(v.TargetPortal == "", p, "targetPortal", "")
	c.iscsiTarget(v.IQN, v.Lun, (v.DiscoveryCHAPAuth || v.SessionCHAPAuth) && v.SecretRef == nil, p, badForm)
	if v.InitiatorName != nil {
		c.iscsiName(*v.InitiatorName, p, "initiatorname", badForm)
	}
}

func (c *checker) iscsiTarget(iqn string, lun int32, lacksSecret bool, p *field.Path, badForm string) {
	if iqn == "" {
		c.required(p.Child("iqn"), "")
	} else {
		c.iscsiName(iqn, p, "iqn", badForm)
	}
	if lun < 0 || lun > 255 {
		c.invalid(p.Child("lun"), lun, utilvalidation.InclusiveRangeError(0, 255))
	}
	c.requiredIf(lacksSecret, p, "secretRef", "")
}

// iscsiName checks the name of an initiator or a target; badForm is the message for one with an unknown prefix.
func (c *checker) iscsiName(s string, p *field.Path, child, badForm string) {
	if len(s) < 3 || iscsiNames[s[:3]] == nil {
		c.invalid(p.Child(child), s, badForm)
	} else if !iscsiNames[s[:3]].MatchString(s) {
		c.invalid(p.Child(child), s, "must be valid format")
	}
}

func (c *checker) flocker(v *corev1.FlockerVolumeSource, p *field.Path) {
	c.requiredIf(v.DatasetName == "" && v.DatasetUUID == "", p, "", "one of datasetName and datasetUUID is required")
	invalidIf(c, v.DatasetName != "" && v.DatasetUUID != "", p, "", "resource", "datasetName and datasetUUID can not be specified simultaneously")
	invalidIf(c, strings.Contains(v.DatasetName, "/"), p, "datasetName", v.DatasetName, "must not contain '/'")
}

func (c *checker) quobyte(v *corev1.QuobyteVolumeSource, p *field.Path) {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	switch {
	case v.Registry == "":
		c.required(p.Child("registry"), pairs)
	case len(v.Tenant) >= 65:
		c.required(p.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters")
	default:
		for _, pair := range strings.Split(v.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				c.invalid(p.Child("registry"), v.Registry, pairs)
			}
		}
	}
	c.requiredIf(v.Volume == "", p, "volume", "")
}

func (c *checker) fibreChannel(v *corev1.FCVolumeSource, p *field.Path) {
	c.requiredIf(len(v.TargetWWNs) == 0 && len(v.WWIDs) == 0, p, "targetWWNs", "must specify either targetWWNs or wwids, but not both")
	if len(v.TargetWWNs) == 0 {
		return
	}
	invalidIf(c, len(v.WWIDs) != 0, p, "targetWWNs", v.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously")
	if v.Lun == nil {
		c.required(p.Child("lun"), "lun is required if targetWWNs is specified")
	} else if *v.Lun < 0 || *v.Lun > 255 {
		c.invalid(p.Child("lun"), v.Lun, utilvalidation.InclusiveRangeError(0, 255))
	}
}

// flexVolume keeps options out of the platform's own namespaces.
func (c *checker) flexVolume(driver string, options map[string]string, p *field.Path) {
	c.requiredIf(driver == "", p, "driver", "")
	for _, k := range sortedKeys(options) {
		namespace, _, _ := strings.Cut(k, "/")
		normalized := "." + strings.ToLower(namespace)
		if strings.HasSuffix(normalized, ".kubernetes.io") || strings.HasSuffix(normalized, ".k8s.io") {
			c.invalid(p.Child("options").Key(k), k, "kubernetes.io and k8s.io namespaces are reserved")
		}
	}
}

func (c *checker) azureDisk(v *corev1.AzureDiskVolumeSource, p *field.Path) {
	c.requiredIf(v.DiskName == "", p, "diskName", "")
	c.requiredIf(v.DataDiskURI == "", p, "diskURI", "")
	if v.CachingMode != nil {
		oneOf(c, p, "cachingMode", *v.CachingMode, cachingModes)
	}
	if v.Kind == nil {
		return
	}
	oneOf(c, p, "kind", *v.Kind, diskKinds)
	if *v.Kind == corev1.AzureManagedDisk {
		if !strings.HasPrefix(v.DataDiskURI, "/subscriptions/") {
			c.add(field.NotSupported(p.Child("diskURI"), v.DataDiskURI,
				[]string{"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"}))
		}
	} else if !strings.HasPrefix(v.DataDiskURI, "https://") {
		c.add(field.NotSupported(p.Child("diskURI"), v.DataDiskURI,
			[]string{"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"}))
	}
}

func (c *checker) storageOS(name, namespace string, p *field.Path) {
	c.requiredThen(name, p, "volumeName", c.dnsLabel)
	if namespace != "" {
		c.dnsLabel(p, "volumeNamespace", namespace)
	}
}

func (c *checker) gcePersistentDisk(d *corev1.GCEPersistentDiskVolumeSource, p *field.Path) {
	c.needs(p, "persistentDisk", need{"pdName", d.PDName})
	c.partition(p.Child("persistentDisk"), d.Partition)
}

func (c *checker) awsElasticBlockStore(d *corev1.AWSElasticBlockStoreVolumeSource, p *field.Path) {
	c.needs(p, "awsElasticBlockStore", need{"volumeID", d.VolumeID})
	c.partition(p.Child("awsElasticBlockStore"), d.Partition)
}

func (c *checker) rbd(monitors []string, image string, p *field.Path) {
	c.needsSome(p, "rbd", "monitors", len(monitors))
	c.needs(p, "rbd", need{"image", image})
}

func (c *checker) csi(v *corev1.CSIVolumeSource, p *field.Path) {
	if v.Driver == "" && c.o.Since133 {
		c.required(p.Child("driver"), "")
	} else {
		c.add(rules.DriverName(v.Driver, p.Child("driver"))...)
	}
	if v.NodePublishSecretRef == nil {
		return
	}
	if v.NodePublishSecretRef.Name == "" {
		c.required(p.Child("nodePublishSecretRef", "name"), "")
	} else if !okSubdomain(v.NodePublishSecretRef.Name) {
		c.messages(p.Child("name"), v.NodePublishSecretRef.Name, validation.NameIsDNSSubdomain(v.NodePublishSecretRef.Name, false))
	}
}
