package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// deprecatedLabels of nodes, and what a client should say instead.
var deprecatedLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  "deprecated since v1.9",
	"scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// DeprecatedNodeLabel names the replacement of a deprecated node label, or is "".
func DeprecatedNodeLabel(key string) string { return deprecatedLabels[key] }

// deadAnnotations have lost their effect.
var deadAnnotations = [...]struct{ key, message string }{
	{"scheduler.alpha.kubernetes.io/critical-pod", `non-functional in v1.16+; use the "priorityClassName" field instead`},
	{"security.alpha.kubernetes.io/sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
	{"security.alpha.kubernetes.io/unsafe-sysctls", `non-functional in v1.11+; use the "sysctls" field instead`},
}

const (
	nullSelector     = "a null labelSelector results in matching no pod"
	appArmorObsolete = `deprecated since v1.30; use the "appArmorProfile" field instead`
	seccompObsolete  = `non-functional in v1.27+; use the "seccompProfile" field instead`
)

// Warnings are the warnings about a template. p is its path.
func (r Rules) Warnings(p *field.Path, t *corev1.PodTemplateSpec) []string {
	return r.warnings(p, &t.Spec, &t.ObjectMeta, true)
}

// PodWarnings are the Warnings for a new Pod.
func (r Rules) PodWarnings(pod *corev1.Pod) []string {
	return r.warnings(nil, &pod.Spec, &pod.ObjectMeta, false)
}

// AppArmorWarning is the warning for an annotation key that gives a profile.
func AppArmorWarning(key string) string {
	return fmt.Sprintf("%s: %s", field.NewPath("metadata", "annotations").Key(key), appArmorObsolete)
}

// adviser collects warnings, up to as many as anybody would read: headers are cut
// long before.
type adviser struct {
	spec, meta *field.Path
	out        []string
	template   bool
	since133   bool
	gitRepo    bool // volumes with repositories work
}

const mostWarnings = 256

func (a *adviser) say(text string) {
	if len(a.out) < mostWarnings {
		a.out = append(a.out, text)
	}
}

func (a *adviser) warn(p *field.Path, text string) {
	if len(a.out) < mostWarnings {
		a.say(p.String() + ": " + text)
	}
}

func (a *adviser) warnf(p *field.Path, format string, args ...any) {
	if len(a.out) < mostWarnings {
		a.warn(p, fmt.Sprintf(format, args...))
	}
}

func (r Rules) warnings(p *field.Path, s *corev1.PodSpec, m *metav1.ObjectMeta, template bool) []string {
	a := adviser{spec: p.Child("spec"), meta: p.Child("metadata"), template: template, since133: r.since133, gitRepo: r.gitRepo || !r.since133}
	a.nodeLabels(s)
	a.spread(s)
	for _, d := range deadAnnotations {
		if _, ok := m.Annotations[d.key]; ok {
			a.warn(a.meta.Child("annotations").Key(d.key), d.message)
		}
	}
	a.volumes(s)
	a.paths(s)
	a.lists(s)
	a.wholeBytes(s.Overhead, a.spec, "overhead")
	a.containers(s, m)
	a.ports(s)
	if a.since133 {
		a.portNames(s)
	}
	if g := s.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		a.warn(a.spec.Child("terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	a.affinity(s)
	if a.since133 {
		a.addresses(s)
	}
	return a.out
}

func (a *adviser) nodeLabels(s *corev1.PodSpec) {
	for _, k := range sortedKeys(s.NodeSelector) {
		if msg := deprecatedLabels[k]; msg != "" {
			a.warn(a.spec.Child("nodeSelector").Key(k), msg)
		}
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return
	}
	n, p := s.Affinity.NodeAffinity, a.spec.Child("affinity", "nodeAffinity")
	if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		for i := range r.NodeSelectorTerms {
			a.nodeTerm(&r.NodeSelectorTerms[i], p.Child(requiredTerms, "nodeSelectorTerms").Index(i), false)
		}
	}
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		a.nodeTerm(&n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference, p.Child(preferredTerms).Index(i).Child("preference"), a.since133)
	}
}

// nodeTerm warns of labels that are deprecated and, where values says so, of values that no label can have.
func (a *adviser) nodeTerm(t *corev1.NodeSelectorTerm, p *field.Path, values bool) {
	for i := range t.MatchExpressions {
		r := &t.MatchExpressions[i]
		if msg := deprecatedLabels[r.Key]; msg != "" {
			a.warnf(p.Child("matchExpressions").Index(i).Child("key"), "%s is %s", r.Key, msg)
		}
		for j, v := range r.Values {
			if !values || okLabelValue(v) {
				continue
			}
			for _, msg := range utilvalidation.IsValidLabelValue(v) {
				a.warnf(p.Child("matchExpressions").Index(i).Child("values").Index(j), "%s is invalid, %s", v, msg)
			}
		}
	}
}

func (a *adviser) spread(s *corev1.PodSpec) {
	for i := range s.TopologySpreadConstraints {
		t := &s.TopologySpreadConstraints[i]
		if t.LabelSelector != nil && deprecatedLabels[t.TopologyKey] == "" {
			continue
		}
		p := a.spec.Child("topologySpreadConstraints").Index(i)
		if msg := deprecatedLabels[t.TopologyKey]; msg != "" {
			a.warnf(p.Child("topologyKey"), "%s is %s", t.TopologyKey, msg)
		}
		if t.LabelSelector == nil {
			a.warn(p.Child("labelSelector"), nullSelector)
		}
	}
}

func (a *adviser) volumes(s *corev1.PodSpec) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.EmptyDir != nil || v.ConfigMap != nil || v.Secret != nil || v.Projected != nil || v.PersistentVolumeClaim != nil {
			continue
		}
		p, gitRepo := a.spec.Child("volumes").Index(i), "deprecated in v1.11"
		if !a.gitRepo {
			gitRepo += ", and disabled by default in v1.33+"
		}
		for _, old := range [...]struct {
			used          bool
			name, message string
		}{
			{v.PhotonPersistentDisk != nil, "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
			{v.GitRepo != nil, "gitRepo", gitRepo},
			{v.ScaleIO != nil, "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
			{v.Flocker != nil, "flocker", "deprecated in v1.22, non-functional in v1.25+"},
			{v.StorageOS != nil, "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Quobyte != nil, "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
			{v.Glusterfs != nil, "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
		} {
			if old.used {
				a.warn(p.Child(old.name), old.message)
			}
		}
		if v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			a.out = append(a.out, ClaimSpecWarnings(&v.Ephemeral.VolumeClaimTemplate.Spec, p.Child("ephemeral").Child("volumeClaimTemplate").Child("spec"))...)
		}
		if v.CephFS != nil {
			a.warn(p.Child("cephfs"), "deprecated in v1.28, non-functional in v1.31+")
		}
		if v.RBD != nil {
			a.warn(p.Child("rbd"), "deprecated in v1.28, non-functional in v1.31+")
		}
	}
}

// ClaimSpecWarnings are the warnings for the spec of a claim. p is its path.
func ClaimSpecWarnings(s *corev1.PersistentVolumeClaimSpec, p *field.Path) []string {
	var a adviser
	a.wholeByte(s.Resources.Requests, corev1.ResourceStorage, p.Child("resources"), "requests")
	a.wholeByte(s.Resources.Limits, corev1.ResourceStorage, p.Child("resources"), "limits")
	return a.out
}

// lists warns of entries that merge into one.
func (a *adviser) lists(s *corev1.PodSpec) {
	var ips, secrets nameSet
	for i := range s.HostAliases {
		if ip := s.HostAliases[i].IP; ips.has(ip) {
			a.warnf(a.spec.Child("hostAliases").Index(i).Child("ip"), "duplicate ip %q", ip)
		} else {
			ips.add(ip)
		}
	}
	for i := range s.ImagePullSecrets {
		if name := s.ImagePullSecrets[i].Name; secrets.has(name) {
			a.warnf(a.spec.Child("imagePullSecrets").Index(i).Child("name"), "duplicate name %q", name)
		} else {
			secrets.add(name)
		}
	}
	for i := range s.ImagePullSecrets {
		if s.ImagePullSecrets[i].Name == "" {
			a.warnf(a.spec.Child("imagePullSecrets").Index(i).Child("name"), "invalid empty name %q", "")
		}
	}
}

// wholeBytes warns of fractions of a byte.
func (a *adviser) wholeBytes(list corev1.ResourceList, p *field.Path, child string) {
	if len(list) > 0 {
		a.wholeByte(list, corev1.ResourceMemory, p, child)
		a.wholeByte(list, corev1.ResourceEphemeralStorage, p, child)
	}
}

func (a *adviser) containerBytes(r *corev1.ResourceRequirements, w where) {
	for _, n := range [...]corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if fractional(r.Limits, n) || fractional(r.Requests, n) {
			p := w.path(a.spec).Child("resources")
			a.wholeByte(r.Limits, n, p, "limits")
			a.wholeByte(r.Requests, n, p, "requests")
		}
	}
}

func fractional(list corev1.ResourceList, n corev1.ResourceName) bool {
	q, ok := list[n]
	return ok && q.MilliValue()%1000 != 0
}

func (a *adviser) wholeByte(list corev1.ResourceList, n corev1.ResourceName, p *field.Path, child string) {
	if q, ok := list[n]; ok && fractional(list, n) {
		a.warnf(p.Child(child).Key(string(n)), "fractional byte value %q is invalid, must be an integer", q.String())
	}
}

func (a *adviser) containers(s *corev1.PodSpec, m *metav1.ObjectMeta) {
	if len(m.Annotations) > 0 && (s.SecurityContext == nil || s.SecurityContext.SeccompProfile == nil) {
		a.annotation(m, corev1.SeccompPodAnnotationKey, seccompObsolete)
	}
	visitContainers(s, func(c *corev1.Container, w where) {
		if len(m.Annotations) > 0 {
			if c.SecurityContext == nil || c.SecurityContext.SeccompProfile == nil {
				a.annotation(m, corev1.SeccompContainerAnnotationKeyPrefix+c.Name, seccompObsolete)
			}
			// Pods are warned while annotation and field are brought in step.
			if a.template && a.appArmorUnsaid(s, c, m) {
				a.annotation(m, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name, appArmorObsolete)
			}
		}
		if len(c.Resources.Limits) > 0 || len(c.Resources.Requests) > 0 {
			a.containerBytes(&c.Resources, w)
		}
		a.env(c.Env, w)
	})
}

// appArmorUnsaid reports whether only the annotation of a container gives it its profile.
func (a *adviser) appArmorUnsaid(s *corev1.PodSpec, c *corev1.Container, m *metav1.ObjectMeta) bool {
	profile := EffectiveAppArmor(s, c)
	if profile == nil || !a.since133 {
		return profile == nil
	}
	own := c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil
	said := AppArmorProfile(m.Annotations[corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+c.Name])
	return !own && !equality.Semantic.DeepEqual(profile, said)
}

func (a *adviser) annotation(m *metav1.ObjectMeta, key, message string) {
	if _, ok := m.Annotations[key]; ok {
		a.warn(a.meta.Child("annotations").Key(key), message)
	}
}

// fewVars is how many variables are looked through for a name faster than a set of them is made.
const fewVars = 32

// env warns of a variable that is set again without use of its former value.
func (a *adviser) env(vars []corev1.EnvVar, w where) {
	if len(vars) < 2 {
		return
	}
	var seen nameSet
	again := func(i int) bool {
		if len(vars) <= fewVars {
			return slices.ContainsFunc(vars[:i], func(v corev1.EnvVar) bool { return v.Name == vars[i].Name })
		}
		was := seen.has(vars[i].Name)
		seen.add(vars[i].Name)
		return was
	}
	for i := range vars {
		v := &vars[i]
		if !again(i) {
			continue
		}
		ref := "$(" + v.Name + ")"
		if v.ValueFrom != nil || v.Value == ref || !strings.Contains(v.Value, ref) {
			a.warnf(w.path(a.spec).Child("env").Index(i), "hides previous definition of %q, which may be dropped when using apply", v.Name)
		}
	}
}

// ports warns of ports that are declared twice.
func (a *adviser) ports(s *corev1.PodSpec) {
	type declared struct {
		port *corev1.ContainerPort
		w    where
		i    int
	}
	path := func(w where, i int) *field.Path { return w.path(a.spec).Child("ports").Index(i) }
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	var all map[key][]declared
	visitContainers(s, func(c *corev1.Container, w where) {
		if len(c.Ports) > 0 && all == nil {
			all = make(map[key][]declared)
		}
		for i := range c.Ports {
			port := &c.Ports[i]
			if port.HostIP != "" && port.HostPort == 0 {
				a.warnf(path(w, i), "hostIP set without hostPort: %+v", *port)
			}
			k := key{port.ContainerPort, port.Protocol}
			for _, other := range all[k] {
				if len(a.out) == mostWarnings {
					return
				}
				if msg := portClash(port, other.port); msg != "" {
					a.warnf(path(w, i), "%s port definition with %s", msg, path(other.w, other.i))
				}
			}
			if len(all[k]) < mostCompared {
				all[k] = append(all[k], declared{port, w, i})
			}
		}
	})
}

// portNames warns of names that two ports of the pod have.
func (a *adviser) portNames(s *corev1.PodSpec) {
	type place struct {
		where
		port int
	}
	path := func(p place) *field.Path { return p.path(a.spec).Child("ports").Index(p.port) }
	var names nameSet
	var first map[string]place // made when a name comes again
	visitContainers(s, func(c *corev1.Container, w where) {
		for i := range c.Ports {
			name := c.Ports[i].Name
			if name == "" {
				continue
			}
			if !names.has(name) {
				names.add(name)
				continue
			}
			if first == nil {
				first = make(map[string]place)
				visitContainers(s, func(c *corev1.Container, w where) {
					for i := range c.Ports {
						if _, known := first[c.Ports[i].Name]; !known {
							first[c.Ports[i].Name] = place{w, i}
						}
					}
				})
			}
			if len(a.out) < mostWarnings {
				other := path(first[name])
				a.warnf(path(place{w, i}), "duplicate port name %q with %s, services and probes that select ports by name will use %s", name, other, other)
			}
		}
	})
}

// addresses warns of addresses that are not written in their canonical form.
func (a *adviser) addresses(s *corev1.PodSpec) {
	warn := func(p *field.Path, ip string) {
		if len(a.out) < mostWarnings && rules.IsIP(ip) {
			a.out = append(a.out, utilvalidation.GetWarningsForIP(p, ip)...)
		}
	}
	if s.DNSConfig != nil {
		for i, ip := range s.DNSConfig.Nameservers {
			warn(a.spec.Child("dnsConfig", "nameservers").Index(i), ip)
		}
	}
	for i := range s.HostAliases {
		warn(a.spec.Child("hostAliases").Index(i).Child("ip"), s.HostAliases[i].IP)
	}
}

// portClash describes how two ports of one number and protocol conflict, or is "".
func portClash(a, b *corev1.ContainerPort) string {
	switch {
	case a.HostIP == b.HostIP && a.HostPort == b.HostPort:
		return "duplicate"
	case a.HostPort == 0 || b.HostPort == 0:
		return "overlapping"
	case a.HostPort == b.HostPort && (a.HostIP == "") != (b.HostIP == ""):
		return "dangerously ambiguous"
	}
	return ""
}

func (a *adviser) affinity(s *corev1.PodSpec) {
	if s.Affinity == nil {
		return
	}
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, p *field.Path) {
		for i := range required {
			if required[i].LabelSelector == nil {
				a.warn(p.Child(requiredTerms).Index(i).Child("labelSelector"), nullSelector)
			}
		}
		for i := range preferred {
			if preferred[i].PodAffinityTerm.LabelSelector == nil {
				a.warn(p.Child(preferredTerms).Index(i).Child("podAffinityTerm", "labelSelector"), nullSelector)
			}
		}
	}
	if f := s.Affinity.PodAffinity; f != nil {
		terms(f.RequiredDuringSchedulingIgnoredDuringExecution, f.PreferredDuringSchedulingIgnoredDuringExecution, a.spec.Child("affinity", "podAffinity"))
	}
	if f := s.Affinity.PodAntiAffinity; f != nil {
		terms(f.RequiredDuringSchedulingIgnoredDuringExecution, f.PreferredDuringSchedulingIgnoredDuringExecution, a.spec.Child("affinity", "podAntiAffinity"))
	}
}
