package podspec

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
)

// Options relax rules for data that was stored before a rule existed, and name the kind that contains the
// spec. Take them from TemplateOptions or PodOptions.
type Options struct {
	// Pod is true for the spec of a Pod, false for a template.
	Pod bool
	// PodName is the name of the Pod, empty for a template: claims of ephemeral
	// volumes are named after it.
	PodName string

	AllowInvalidPodDeletionCost      bool
	AllowIndivisibleHugePages        bool
	AllowInvalidSpreadSelector       bool // topologySpreadConstraints[].labelSelector
	AllowInvalidLabelValueInSelector bool // label selectors of pod affinity
	AllowNamespacedSysctlsOnHost     bool // net.* with hostNetwork, kernel.* with hostIPC
	AllowNonLocalProjectedTokenPath  bool
	AllowZeroSleep                   bool // a sleep of no seconds in a lifecycle handler
	AllowLooseSearches               bool // search paths of DNS with underscores, and "."
	AllowLooseEnv                    bool // names of variables that shells cannot have
	AllowMountOption                 bool // volumes are labelled for SELinux as they are mounted
	AttributesClass                  bool // claims of ephemeral volumes may name a class of attributes
	PodResources                     bool // the spec has resources of its own
	NoPrivileged                     bool // containers may not be privileged

	Since133                 bool // the rules of release.PodRules133 hold
	AllowInvalidNodeValues   bool // required node affinity has values that no label can have
	AllowRestartRules        bool // containers have restart policies of their own
	AllowRestartAll          bool // a container that ends may restart all
	AllowEnvFiles            bool
	AllowBlocksOfUsers       bool // block devices in pods with users of their own
	AllowUsersOnHost         bool // users of their own on the network of the node
	AllowComparisons         bool // tolerations of taints with smaller or greater values
	AllowInitResizePolicy    bool // init containers have resize policies
	AllowInitRestartOnResize bool // init containers that end may be restarted to resize them
	MergedSpreadKeys         bool // selectors of spread constraints hold the labels that matchLabelKeys name
	StrictIPs                bool // addresses have the canonical form
}

// TemplateOptions computes the options for a template and the one it replaces;
// old is nil on create.
func (r Rules) TemplateOptions(t, old *corev1.PodTemplateSpec) Options {
	var o Options
	var was *corev1.PodSpec
	if old != nil {
		o, was = relaxedFor(&old.Spec, old.Annotations), &old.Spec
	}
	return r.relaxed(o, was)
}

// PodOptions computes the options for a Pod and the one it replaces; old is nil
// on create.
func (r Rules) PodOptions(p, old *corev1.Pod) Options {
	var o Options
	var was *corev1.PodSpec
	if old != nil {
		o, was = relaxedFor(&old.Spec, old.Annotations), &old.Spec
	}
	o = r.relaxed(o, was)
	o.Pod, o.PodName = true, p.Name
	return o
}

// relaxed adds the permissions of gates, and those of an old spec that already has the fields.
func (r Rules) relaxed(o Options, old *corev1.PodSpec) Options {
	o.AllowZeroSleep = o.AllowZeroSleep || r.zeroSleep
	o.AllowLooseSearches = r.looseSearches || old != nil && hasLooseSearch(old)
	o.AllowLooseEnv = r.looseEnv || old != nil && hasLooseEnv(old)
	o.AllowMountOption = r.seLinuxMount || old != nil && mountsWithLabel(old)
	o.AttributesClass = r.attributes
	o.PodResources = r.podResources
	o.NoPrivileged = r.noPrivileged
	return r.relaxed133(o, old)
}

// relaxed133 is relaxed for additions of releases after 1.32.
func (r Rules) relaxed133(o Options, old *corev1.PodSpec) Options {
	o.AllowInitResizePolicy = r.since133 && r.resize
	if !r.since133 {
		return o
	}
	o.Since133, o.StrictIPs = true, r.strictIPs
	o.AllowRestartRules = r.restartRules || restartRulesInUse(old)
	o.AllowRestartAll = r.restartAll || restartAllInUse(old)
	o.AllowEnvFiles = r.envFiles || envFilesInUse(old)
	o.AllowComparisons = r.comparisons || comparisonsInUse(old)
	o.AllowUsersOnHost = r.usersOnHost
	o.MergedSpreadKeys = r.mergeSpreadKeys
	if old == nil {
		return o
	}
	users := old.HostUsers != nil && !*old.HostUsers
	o.AllowUsersOnHost = o.AllowUsersOnHost || old.HostNetwork && users
	o.AllowBlocksOfUsers = users && blocksInUse(old)
	o.AllowInvalidNodeValues = hasInvalidNodeValues(old)
	o.AllowInitRestartOnResize = initRestartOnResizeInUse(old)
	o.AllowInitResizePolicy = o.AllowInitResizePolicy || slices.ContainsFunc(old.InitContainers, func(c corev1.Container) bool {
		return Restartable(&c) && len(c.ResizePolicy) > 0
	})
	if r.spreadKeys && breaksSpreadKeys(old, o.MergedSpreadKeys) {
		o.MergedSpreadKeys = !o.MergedSpreadKeys
	}
	return o
}

// relaxedFor finds the rules that an existing spec breaks.
func relaxedFor(old *corev1.PodSpec, annotations map[string]string) Options {
	return Options{
		AllowInvalidPodDeletionCost:      !validDeletionCost(annotations),
		AllowIndivisibleHugePages:        hasIndivisibleHugePages(old),
		AllowInvalidSpreadSelector:       hasInvalidSpreadSelector(old),
		AllowInvalidLabelValueInSelector: hasInvalidAffinitySelector(old),
		AllowNamespacedSysctlsOnHost:     hasHostSysctl(old),
		AllowNonLocalProjectedTokenPath:  hasNonLocalTokenPath(old),
		AllowZeroSleep:                   hasZeroSleep(old),
	}
}

// validDeletionCost reports whether the deletion cost, if there is one, is a
// canonical 32 bit integer.
func validDeletionCost(annotations map[string]string) bool {
	v, ok := annotations[corev1.PodDeletionCost]
	if !ok {
		return true
	}
	// Parsing it as an integer would lose a leading plus or zero.
	if v == "" || v != "0" && v[0] != '-' && (v[0] < '1' || v[0] > '9') {
		return false
	}
	_, err := strconv.ParseInt(v, 10, 32)
	return err == nil
}

func hasIndivisibleHugePages(s *corev1.PodSpec) bool {
	bad := func(list corev1.ResourceList) bool {
		for name, q := range list {
			if isHugePages(name) && !divisibleByPage(name, q) {
				return true
			}
		}
		return false
	}
	return bad(s.Overhead) || anyContainer(s, func(c *corev1.Container) bool { return bad(c.Resources.Limits) || bad(c.Resources.Requests) })
}

func hasInvalidSpreadSelector(s *corev1.PodSpec) bool {
	for i := range s.TopologySpreadConstraints {
		var c checker
		if c.selector(s.TopologySpreadConstraints[i].LabelSelector, false, nil, "labelSelector"); len(c.errs) > 0 {
			return true
		}
	}
	return false
}

func hasInvalidAffinitySelector(s *corev1.PodSpec) bool {
	found := false
	visitPodAffinityTerms(s, func(t *corev1.PodAffinityTerm) {
		var c checker
		c.affinityTermSelectors(t, nil)
		found = found || len(c.errs) > 0
	})
	return found
}

func hasHostSysctl(s *corev1.PodSpec) bool {
	if s.SecurityContext == nil {
		return false
	}
	for i := range s.SecurityContext.Sysctls {
		if hostSysctl(s, s.SecurityContext.Sysctls[i].Name) != "" {
			return true
		}
	}
	return false
}

func hasNonLocalTokenPath(s *corev1.PodSpec) bool {
	return anyProjection(s, func(p *corev1.VolumeProjection) bool {
		return p.ServiceAccountToken != nil && len(localPathProblems(p.ServiceAccountToken.Path)) > 0
	})
}

func hasZeroSleep(s *corev1.PodSpec) bool {
	zero := func(h *corev1.LifecycleHandler) bool { return h != nil && h.Sleep != nil && h.Sleep.Seconds == 0 }
	return anyContainer(s, func(c *corev1.Container) bool {
		return c.Lifecycle != nil && (zero(c.Lifecycle.PreStop) || zero(c.Lifecycle.PostStart))
	})
}

// breaksSpreadKeys reports whether a spec has label keys for spreading that are invalid, by the rule that the
// gate for merging them chooses.
func breaksSpreadKeys(s *corev1.PodSpec, merged bool) bool {
	for i := range s.TopologySpreadConstraints {
		c := checker{o: Options{MergedSpreadKeys: merged}}
		if c.spreadLabelKeys(&s.TopologySpreadConstraints[i], nil); len(c.errs) > 0 {
			return true
		}
	}
	return false
}

func hasInvalidNodeValues(s *corev1.PodSpec) bool {
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil || s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	return hasInvalidValues(s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
}

// hasInvalidValues reports whether a choice of nodes has values that no label can have.
func hasInvalidValues(s *corev1.NodeSelector) bool {
	for i := range s.NodeSelectorTerms {
		for _, r := range s.NodeSelectorTerms[i].MatchExpressions {
			if slices.ContainsFunc(r.Values, func(v string) bool { return !okLabelValue(v) }) {
				return true
			}
		}
	}
	return false
}

func comparisonsInUse(s *corev1.PodSpec) bool {
	return s != nil && slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
		return t.Operator == corev1.TolerationOpLt || t.Operator == corev1.TolerationOpGt
	})
}

func blocksInUse(s *corev1.PodSpec) bool {
	return anyContainer(s, func(c *corev1.Container) bool { return len(c.VolumeDevices) > 0 })
}

func mountsWithLabel(s *corev1.PodSpec) bool {
	sc := s.SecurityContext
	return sc != nil && sc.SELinuxChangePolicy != nil && *sc.SELinuxChangePolicy == corev1.SELinuxChangePolicyMountOption
}

func hasLooseSearch(s *corev1.PodSpec) bool {
	return s.DNSConfig != nil && slices.ContainsFunc(s.DNSConfig.Searches, func(path string) bool {
		return path == "." || strings.Contains(path, "_")
	})
}

func hasLooseEnv(s *corev1.PodSpec) bool {
	return anyContainer(s, func(c *corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return len(utilvalidation.IsEnvVarName(e.Name)) > 0 }) ||
			slices.ContainsFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool {
				return e.Prefix != "" && len(utilvalidation.IsEnvVarName(e.Prefix)) > 0
			})
	})
}
