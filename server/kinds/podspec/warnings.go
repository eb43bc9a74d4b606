package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

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

// Warnings returns the warnings about a template. p is its path.
func (r Rules) Warnings(p *field.Path, t *corev1.PodTemplateSpec) []string {
	return r.warnings(p, &t.Spec, &t.ObjectMeta, true)
}

// PodWarnings returns the Warnings for a new Pod.
func (r Rules) PodWarnings(pod *corev1.Pod) []string {
	return r.warnings(nil, &pod.Spec, &pod.ObjectMeta, false)
}

// AppArmorWarning returns the warning for an annotation key that gives a profile.
func AppArmorWarning(key string) string {
	return fmt.Sprintf("%s: %s", field.NewPath("metadata", "annotations").Key(key), appArmorObsolete)
}

// adviser collects warnings, up to a number beyond which headers are cut anyway.
type adviser struct {
	spec, meta *field.Path
	out        []string
	template   bool
	since133   bool
	gitRepo    bool // volumes with repositories work
}

const maxWarnings = 256

func (a *adviser) add(text string) {
	if len(a.out) < maxWarnings {
		a.out = append(a.out, text)
	}
}

func (a *adviser) warn(p *field.Path, text string) {
	if len(a.out) < maxWarnings {
		a.add(p.String() + ": " + text)
	}
}

func (a *adviser) warnf(p *field.Path, format string, args ...any) {
	if len(a.out) < maxWarnings {
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

// addresses warns of addresses that are not written in their canonical form.
func (a *adviser) addresses(s *corev1.PodSpec) {
	warn := func(p *field.Path, ip string) {
		if len(a.out) < maxWarnings && rules.IsIP(ip) {
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
