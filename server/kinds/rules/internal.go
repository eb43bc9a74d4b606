package rules

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// member is a field of a structure as errors show it.
type member struct {
	reflect.StructField
	value reflect.Value
	all   []member // of a structure that has fields of the one around it, too
}

// internalOrder lists the fields of structures whose internal types in a stock server, which its errors show,
// have another order than those of the API, or lack some of their fields.
var internalOrder = map[reflect.Type][]string{
	reflect.TypeFor[corev1.PodSpec](): {
		"Volumes", "InitContainers", "Containers", "EphemeralContainers", "RestartPolicy", "TerminationGracePeriodSeconds", "ActiveDeadlineSeconds",
		"DNSPolicy", "NodeSelector", "ServiceAccountName", "AutomountServiceAccountToken", "NodeName", "SecurityContext", "ImagePullSecrets", "Hostname",
		"Subdomain", "SetHostnameAsFQDN", "Affinity", "SchedulerName", "Tolerations", "HostAliases", "PriorityClassName", "Priority", "PreemptionPolicy",
		"DNSConfig", "ReadinessGates", "RuntimeClassName", "Overhead", "EnableServiceLinks", "TopologySpreadConstraints", "OS", "SchedulingGates",
		"ResourceClaims", "Resources", "HostnameOverride", "SchedulingGroup",
	},
	reflect.TypeFor[corev1.PodSecurityContext](): {
		"SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot", "SupplementalGroups", "SupplementalGroupsPolicy", "FSGroup",
		"FSGroupChangePolicy", "Sysctls", "SeccompProfile", "AppArmorProfile", "SELinuxChangePolicy",
	},
	reflect.TypeFor[corev1.VolumeSource](): {
		"HostPath", "EmptyDir", "GCEPersistentDisk", "AWSElasticBlockStore", "GitRepo", "Secret", "NFS", "ISCSI", "Glusterfs", "PersistentVolumeClaim",
		"RBD", "Quobyte", "FlexVolume", "Cinder", "CephFS", "Flocker", "DownwardAPI", "FC", "AzureFile", "ConfigMap", "VsphereVolume", "AzureDisk",
		"PhotonPersistentDisk", "Projected", "PortworxVolume", "ScaleIO", "StorageOS", "CSI", "Ephemeral", "Image",
	},
	reflect.TypeFor[corev1.PersistentVolumeSource](): {
		"GCEPersistentDisk", "AWSElasticBlockStore", "HostPath", "Glusterfs", "NFS", "RBD", "Quobyte", "ISCSI", "FlexVolume", "Cinder", "CephFS", "FC",
		"Flocker", "AzureFile", "VsphereVolume", "AzureDisk", "PhotonPersistentDisk", "PortworxVolume", "ScaleIO", "Local", "StorageOS", "CSI",
	},
	reflect.TypeFor[storagev1.CSIDriverSpec](): {
		"AttachRequired", "FSGroupPolicy", "PodInfoOnMount", "VolumeLifecycleModes", "StorageCapacity", "TokenRequests", "RequiresRepublish",
		"SELinuxMount", "NodeAllocatableUpdatePeriodSeconds", "ServiceAccountTokenInSecrets", "PreventPodSchedulingIfMissing",
	},
}

// ofHost are the fields of a PodSpec that are in the security context of the internal type.
var ofHost = []string{"HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers"}

// shownFields returns the fields of a structure, in the order of the internal type.
func shownFields(v reflect.Value) []member {
	order, ok := internalOrder[v.Type()]
	if !ok {
		all := make([]member, 0, v.NumField())
		for i := range v.NumField() {
			all = append(all, member{StructField: v.Type().Field(i), value: v.Field(i)})
		}
		return all
	}
	all := pick(nil, v, order)
	if v.Type() != reflect.TypeFor[corev1.PodSpec]() {
		return all
	}
	for i := range all {
		if context := all[i].value; all[i].Name == "SecurityContext" && !context.IsNil() {
			all[i].all = append(pick(nil, v, ofHost), shownFields(context.Elem())...)
		}
	}
	return all
}

func pick(all []member, v reflect.Value, names []string) []member {
	for _, name := range names {
		f, _ := v.Type().FieldByName(name)
		all = append(all, member{StructField: f, value: v.FieldByIndex(f.Index)})
	}
	return all
}
