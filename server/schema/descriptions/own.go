package descriptions

// Descriptions that no linked package has, in our own words. The test of this package fails when an entry is
// no longer needed.

// ownTypes describes types by name.
var ownTypes = map[string]string{
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString is a number or a string. It is written in JSON as whichever of the two it holds, so that a field can take, for example, the name of a port or its number.",
}

// ownFields describes fields by the name of their type and their own.
var ownFields = map[string]map[string]string{
	"k8s.io/api/storage/v1.VolumeAttachmentSource": {
		"inlineVolumeSpec": "inlineVolumeSpec is the volume to attach, as a PersistentVolumeSpec, where a pod names a volume in place instead of a PersistentVolume. It is used while in-tree volumes are moved to CSI drivers.",
	},
}

// ownValues describes the values of enumerations by the name of their type.
var ownValues = map[string]map[string]string{
	"k8s.io/api/admissionregistration/v1.FailurePolicyType": {
		"Fail":   "refuses the request if the policy or the webhook could not be asked.",
		"Ignore": "goes on with the request if the policy or the webhook could not be asked.",
	},
	"k8s.io/api/admissionregistration/v1.MatchPolicyType": {
		"Equivalent": "matches requests for the resources of the rules, in whatever group or version clients name them.",
		"Exact":      "matches requests that name a group, version and resource of the rules.",
	},
	"k8s.io/api/admissionregistration/v1.PatchType": {
		"ApplyConfiguration": "applies the object that the expression makes.",
		"JSONPatch":          "applies the JSON patch that the expression makes.",
	},
	"k8s.io/api/admissionregistration/v1.ReinvocationPolicyType": {
		"IfNeeded": "may call the webhook a second time if others changed the object after the first call.",
		"Never":    "calls the webhook once for each request.",
	},
	"k8s.io/api/admissionregistration/v1.ScopeType": {
		"*":          "matches objects with and without a namespace.",
		"Cluster":    "matches objects without a namespace. Namespaces themselves are such objects.",
		"Namespaced": "matches objects in namespaces.",
	},
	"k8s.io/api/admissionregistration/v1.SideEffectClass": {
		"None":         "calls of the webhook change nothing elsewhere.",
		"NoneOnDryRun": "calls of the webhook may change something elsewhere, but not if the request is a dry run.",
		"Some":         "calls of the webhook may change something elsewhere. Dry runs that would call it are refused.",
		"Unknown":      "it is unknown whether calls of the webhook have side effects. Dry runs that would call it are refused.",
	},
	"k8s.io/api/apps/v1.DaemonSetUpdateStrategyType": {
		"OnDelete":      "replaces a pod when a client deletes it.",
		"RollingUpdate": "replaces the old pods step by step.",
	},
	"k8s.io/api/apps/v1.DeploymentStrategyType": {
		"Recreate":      "ends all old pods before new ones are made.",
		"RollingUpdate": "replaces old pods by new ones step by step.",
	},
	"k8s.io/api/apps/v1.PodManagementPolicyType": {
		"OrderedReady": "makes pods one after another, each when the one before it is ready, and removes them in the opposite order.",
		"Parallel":     "makes and removes pods without waiting for others.",
	},
	"k8s.io/api/apps/v1.StatefulSetUpdateStrategyType": {
		"OnDelete":      "replaces a pod when a client deletes it.",
		"RollingUpdate": "replaces the old pods one after another, the last one first.",
	},
	"k8s.io/api/batch/v1.CompletionMode": {
		"Indexed":    "gives each pod an index, and is complete when a pod of each index has succeeded.",
		"NonIndexed": "is complete when enough pods have succeeded, whichever they are.",
	},
	"k8s.io/api/batch/v1.ConcurrencyPolicy": {
		"Allow":   "starts jobs while earlier ones run.",
		"Forbid":  "starts no job while an earlier one runs.",
		"Replace": "ends a job that still runs when the next one starts.",
	},
	"k8s.io/api/batch/v1.PodFailurePolicyAction": {
		"Count":     "counts the failure towards the backoff limit, as without a policy.",
		"FailIndex": "fails the index of the pod, which is not tried again.",
		"FailJob":   "fails the job and ends its other pods.",
		"Ignore":    "makes another pod without counting the failure towards the backoff limit.",
	},
	"k8s.io/api/batch/v1.PodReplacementPolicy": {
		"Failed":              "makes another pod when the one before it has ended.",
		"TerminatingOrFailed": "makes another pod as soon as the one before it is being deleted or has failed.",
	},
	"k8s.io/api/core/v1.ResourceQuotaScope": {
		"VolumeAttributesClass": "matches claims that name a volume attributes class.",
	},
	"k8s.io/api/discovery/v1.AddressType": {
		"FQDN": "addresses are host names.",
		"IPv4": "addresses are of IPv4.",
		"IPv6": "addresses are of IPv6.",
	},
	"k8s.io/api/networking/v1.PathType": {
		"Exact":                  "matches that very path, with the same letters.",
		"ImplementationSpecific": "matches whatever the class of the Ingress says.",
		"Prefix":                 "matches paths that begin with the same elements, split at slashes.",
	},
	"k8s.io/api/policy/v1.UnhealthyPodEvictionPolicyType": {
		"AlwaysAllow":     "lets pods that run but are not ready be evicted whatever the budget says.",
		"IfHealthyBudget": "lets pods that run but are not ready be evicted while enough other pods are healthy.",
	},
	"k8s.io/api/resource/v1.DeviceTaintEffect": {
		"NoExecute":  "keeps new pods that do not tolerate the taint away from the device, and evicts those that run.",
		"NoSchedule": "keeps new pods that do not tolerate the taint away from the device.",
		"None":       "has no effect; the taint informs.",
	},
	"k8s.io/api/storage/v1.VolumeBindingMode": {
		"Immediate":            "binds and provisions the volume as soon as there is a claim.",
		"WaitForFirstConsumer": "binds and provisions the volume when a pod uses the claim, so that it suits the pod's node.",
	},
}
