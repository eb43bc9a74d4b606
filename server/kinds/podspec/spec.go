package podspec

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	restartPolicies    = []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	preemptionPolicies = []corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever}
)

func (c *checker) spec(s *corev1.PodSpec, p *field.Path) {
	c.requiredIf(s.TerminationGracePeriodSeconds == nil, p, "terminationGracePeriodSeconds", "")
	scope := podScope{
		spec:        s,
		gracePeriod: s.TerminationGracePeriodSeconds,
		hostUsers:   s.HostUsers == nil || *s.HostUsers,
	}
	scope.volumes = c.volumes(s.Volumes, p)
	if len(s.ResourceClaims) > 0 {
		scope.claims = c.podClaims(s.ResourceClaims, p.Child("resourceClaims"))
	}
	c.containers(&scope, p.Child("containers"))
	if len(s.InitContainers) > 0 {
		c.initContainers(&scope, p.Child("initContainers"))
	}
	if len(s.EphemeralContainers) > 0 {
		c.ephemeralContainers(&scope, p.Child("ephemeralContainers"))
	}
	if c.o.PodResources && s.Resources != nil {
		c.podResources(s, scope.claims, p.Child("resources"))
	}
	c.hostNetworkPorts(s, p)
	c.restartPolicy(s.RestartPolicy, p)
	c.dnsPolicy(s.DNSPolicy, p)
	c.labels(p, "nodeSelector", s.NodeSelector)
	c.podSecurityContext(s, p)
	c.scheduling(s, p)
	c.hostProcess(s, p)
	c.hostUsersAlone(s, p)
	c.hostnameOverride(s, p)
	c.references(s, p)
	if s.OS != nil {
		c.os(s, p)
	}
	if s.SchedulingGroup != nil {
		c.schedulingGroup(s.SchedulingGroup, p.Child("schedulingGroup"))
	}
	c.envFileVolumes(s, p)
}

func (c *checker) restartPolicy(r corev1.RestartPolicy, p *field.Path) {
	if r == "" {
		c.required(p.Child("restartPolicy"), "")
		return
	}
	oneOf(c, p, "restartPolicy", r, restartPolicies)
}

// scheduling checks affinity, name resolution, gates and spreading.
func (c *checker) scheduling(s *corev1.PodSpec, p *field.Path) {
	if s.Affinity != nil {
		c.affinity(s.Affinity, p.Child("affinity"))
	}
	c.dnsConfig(s, p)
	for i := range s.ReadinessGates {
		if t := string(s.ReadinessGates[i].ConditionType); !okQualifiedName(t) {
			c.qualifiedName(p.Child("readinessGates").Index(i), "conditionType", t)
		}
	}
	var seen nameSet
	for i := range s.SchedulingGates {
		name, at := s.SchedulingGates[i].Name, p.Child("schedulingGates").Index(i)
		c.qualifiedName(at, "", name)
		duplicateIf(c, seen.has(name), at, "", name)
		seen.add(name)
	}
	if len(s.TopologySpreadConstraints) > 0 {
		c.spread(s.TopologySpreadConstraints, p.Child("topologySpreadConstraints"))
	}
}

// references checks names of other objects, and the small fields between them.
func (c *checker) references(s *corev1.PodSpec, p *field.Path) {
	if n := s.ServiceAccountName; n != "" && !okSubdomain(n) {
		c.messages(p.Child("serviceAccountName"), n, validation.ValidateServiceAccountName(n, false))
	}
	if s.NodeName != "" {
		c.objectName(p, "nodeName", s.NodeName)
	}
	if d := s.ActiveDeadlineSeconds; d != nil && (*d < 1 || *d > math.MaxInt32) {
		c.invalid(p.Child("activeDeadlineSeconds"), *d, utilvalidation.InclusiveRangeError(1, math.MaxInt32))
	}
	if s.Hostname != "" {
		c.dnsLabel(p, "hostname", s.Hostname)
	}
	if s.Subdomain != "" {
		c.dnsLabel(p, "subdomain", s.Subdomain)
	}
	if len(s.Tolerations) > 0 {
		c.tolerations(s.Tolerations, p.Child("tolerations"))
	}
	if len(s.HostAliases) > 0 {
		c.hostAliases(s.HostAliases, p.Child("hostAliases"))
	}
	if s.PriorityClassName != "" {
		c.objectName(p, "priorityClassName", s.PriorityClassName)
	}
	if s.RuntimeClassName != nil {
		c.objectName(p, "runtimeClassName", *s.RuntimeClassName)
	}
	if s.PreemptionPolicy != nil {
		requiredOneOf(c, p, "preemptionPolicy", *s.PreemptionPolicy, preemptionPolicies)
	}
	if s.Overhead != nil {
		// Overhead is written like the limits of a container.
		c.resources(&corev1.ResourceRequirements{Limits: s.Overhead}, nil, p, "overhead")
	}
}

// ValidateOverhead checks the overhead of a runtime class.
func ValidateOverhead(overhead corev1.ResourceList, p *field.Path) field.ErrorList {
	var c checker
	c.resources(&corev1.ResourceRequirements{Limits: overhead}, nil, p, "")
	return c.errs
}
