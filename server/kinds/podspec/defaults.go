package podspec

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// legacyInitAnnotations once carried init containers; they are dropped wherever
// a pod or a template comes in.
var legacyInitAnnotations = [...]string{
	"pod.beta.kubernetes.io/init-containers",
	"pod.alpha.kubernetes.io/init-containers",
	"pod.beta.kubernetes.io/init-container-statuses",
	"pod.alpha.kubernetes.io/init-container-statuses",
}

// DropLegacyAnnotations removes annotations that no longer have a meaning.
func DropLegacyAnnotations(annotations map[string]string) {
	if len(annotations) == 0 {
		return
	}
	for _, k := range legacyInitAnnotations {
		delete(annotations, k)
	}
}

// DefaultTemplate fills in a pod template.
func (r Rules) DefaultTemplate(t *corev1.PodTemplateSpec) {
	DropLegacyAnnotations(t.Annotations)
	r.DefaultPodSpec(&t.Spec)
}

// DefaultPodSpec fills in a pod spec, as templates have it. Rules that hold for
// Pods alone are in package pods.
func (r Rules) DefaultPodSpec(s *corev1.PodSpec) {
	s.DNSPolicy = cmp.Or(s.DNSPolicy, corev1.DNSClusterFirst)
	s.RestartPolicy = cmp.Or(s.RestartPolicy, corev1.RestartPolicyAlways)
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	rules.DefaultTo(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	s.SchedulerName = cmp.Or(s.SchedulerName, corev1.DefaultSchedulerName)
	syncServiceAccount(s)
	for i := range s.Volumes {
		defaultVolume(&s.Volumes[i])
		if v := s.Volumes[i].Image; r.imageVolumes && v != nil && v.PullPolicy == "" {
			v.PullPolicy = pullPolicyFor(v.Reference)
		}
	}
	VisitContainers(s, defaultContainer)
	DefaultResources(s.Overhead)
	if s.Resources != nil {
		DefaultResources(s.Resources.Limits, s.Resources.Requests)
	}
}

// DefaultResources rounds quantities up to a thousandth, the finest unit there is.
func DefaultResources(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, q := range list {
			if exact := q; !exact.RoundUp(resource.Milli) {
				list[name] = exact
			}
		}
	}
}

func defaultContainer(c *corev1.Container) {
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = pullPolicyFor(c.Image)
	}
	c.TerminationMessagePath = cmp.Or(c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	c.TerminationMessagePolicy = cmp.Or(c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		if c.Ports[i].Protocol == "" {
			c.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from != nil && from.FieldRef != nil {
			defaultFieldRef(from.FieldRef)
		}
		if from != nil && from.FileKeyRef != nil {
			rules.DefaultTo(&from.FileKeyRef.Optional, false)
		}
	}
	DefaultResources(c.Resources.Limits, c.Resources.Requests)
	defaultProbe(c.LivenessProbe)
	defaultProbe(c.ReadinessProbe)
	defaultProbe(c.StartupProbe)
	if c.Lifecycle != nil {
		if h := c.Lifecycle.PostStart; h != nil {
			defaultHTTPGet(h.HTTPGet)
		}
		if h := c.Lifecycle.PreStop; h != nil {
			defaultHTTPGet(h.HTTPGet)
		}
	}
}

func defaultFieldRef(r *corev1.ObjectFieldSelector) {
	r.APIVersion = cmp.Or(r.APIVersion, "v1")
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	p.TimeoutSeconds = cmp.Or(p.TimeoutSeconds, 1)
	p.PeriodSeconds = cmp.Or(p.PeriodSeconds, 10)
	p.SuccessThreshold = cmp.Or(p.SuccessThreshold, 1)
	p.FailureThreshold = cmp.Or(p.FailureThreshold, 3)
	defaultHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		rules.DefaultTo(&p.GRPC.Service, "")
	}
}

func defaultHTTPGet(a *corev1.HTTPGetAction) {
	if a == nil {
		return
	}
	a.Path = cmp.Or(a.Path, "/")
	a.Scheme = cmp.Or(a.Scheme, corev1.URISchemeHTTP)
}
