package podspec

import (
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// Rules are the rules of pod specs where some gates are on. Take them from For.
type Rules struct {
	userNamespaces, groupsPolicy, seLinuxPolicy, procMount bool // fields of security contexts
	podResources, resize, deviceClaims                     bool // fields of resources
	attributes                                             bool // claims of ephemeral volumes name a class of attributes
	imageVolumes, trustBundles, recursiveReadOnly          bool // fields of volumes and mounts
	affinityKeys, spreadKeys, inclusionPolicies            bool // fields of scheduling
	sidecars, sleep                                        bool // fields of containers
	zeroSleep, looseSearches, looseEnv, seLinuxMount       bool // rules that are relaxed
	noPrivileged                                           bool // rules of the whole cluster

	since133                                           bool // release.PodRules133
	restartRules, restartAll, stopSignals, envFiles    bool // fields of containers
	podCertificates, hostname, groups                  bool // fields of volumes and of the spec
	mergeSpreadKeys, comparisons, gitRepo, usersOnHost bool // rules of scheduling, volumes and namespaces
	strictIPs                                          bool
}

// NoPrivileged is read like a gate, but is none: whether the server refuses privileged
// containers everywhere.
const NoPrivileged = "rowlock/NoPrivileged"

// For reads the gates that pod specs depend on.
func For(on kinds.Feature) Rules {
	return Rules{
		userNamespaces: on("UserNamespacesSupport"), groupsPolicy: on("SupplementalGroupsPolicy"),
		seLinuxPolicy: on("SELinuxChangePolicy"), procMount: on("ProcMountType"),
		attributes:   on("VolumeAttributesClass"),
		podResources: on("PodLevelResources"), resize: on("InPlacePodVerticalScaling"), deviceClaims: on("DynamicResourceAllocation"),
		imageVolumes: on("ImageVolume"), trustBundles: on("ClusterTrustBundleProjection"), recursiveReadOnly: on("RecursiveReadOnlyMounts"),
		affinityKeys: on("MatchLabelKeysInPodAffinity"), spreadKeys: on("MatchLabelKeysInPodTopologySpread"),
		inclusionPolicies: on("NodeInclusionPolicyInPodTopologySpread"),
		sidecars:          on("SidecarContainers"), sleep: on("PodLifecycleSleepAction"),
		zeroSleep: on("PodLifecycleSleepActionAllowZero"), looseSearches: on("RelaxedDNSSearchValidation"),
		looseEnv: on("RelaxedEnvironmentVariableValidation"), seLinuxMount: on("SELinuxMount"),
		noPrivileged: on(NoPrivileged),

		since133:     on.Has(release.PodRules133),
		restartRules: on("ContainerRestartRules"), restartAll: on("RestartAllContainersOnContainerExits"),
		stopSignals: on("ContainerStopSignals"), envFiles: on("EnvFiles"),
		podCertificates: on("PodCertificateRequest"), hostname: on("HostnameOverride"), groups: on("GenericWorkload"),
		mergeSpreadKeys: on("MatchLabelKeysInPodTopologySpread") && on("MatchLabelKeysInPodTopologySpreadSelectorMerge"),
		comparisons:     on("TaintTolerationComparisonOperators"), gitRepo: on("GitRepoVolumeDriver"),
		usersOnHost: on("UserNamespacesHostNetworkSupport"), strictIPs: on("StrictIPCIDRValidation"),
	}
}
