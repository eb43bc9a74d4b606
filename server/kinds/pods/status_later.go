package pods

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// keepObserved keeps the generations that node agents observed, where a client that does not know of them
// writes the status.
func keepObserved(s, old *corev1.PodStatus) {
	if s.ObservedGeneration == 0 {
		s.ObservedGeneration = old.ObservedGeneration
	}
	if !slices.ContainsFunc(old.Conditions, func(c corev1.PodCondition) bool { return c.ObservedGeneration != 0 }) {
		return
	}
	seen := make(map[corev1.PodConditionType][]int64, len(old.Conditions)) // one for each condition of the type
	for i := range old.Conditions {
		c := &old.Conditions[i]
		seen[c.Type] = append(seen[c.Type], c.ObservedGeneration)
	}
	for i := range s.Conditions {
		c, was := &s.Conditions[i], int64(0)
		if list := seen[c.Type]; len(list) > 0 {
			was, seen[c.Type] = list[0], list[1:]
		}
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = was
		}
	}
}

// dropStatus removes fields of the status whose gates are off, unless the old pod has them.
func (r podRules) dropStatus(pod, was *corev1.Pod) {
	s, old := &pod.Status, &was.Status
	if !r.wholeResize && old.Resources == nil && old.AllocatedResources == nil {
		s.Resources, s.AllocatedResources = nil, nil
	}
	if !r.claims && len(was.Spec.ResourceClaims) == 0 {
		s.ResourceClaimStatuses = nil
	}
	if !r.extended && old.ExtendedResourceClaimStatus == nil {
		s.ExtendedResourceClaimStatus = nil
	}
	if !r.claimed && len(old.NodeAllocatableResourceClaimStatuses) == 0 {
		s.NodeAllocatableResourceClaimStatuses = nil
	}
	if !r.generations && !observes(old) {
		s.ObservedGeneration = 0
		for i := range s.Conditions {
			s.Conditions[i].ObservedGeneration = 0
		}
	}
	r.dropContainerStatuses(pod, was)
}

func observes(s *corev1.PodStatus) bool {
	return s.ObservedGeneration != 0 || slices.ContainsFunc(s.Conditions, func(c corev1.PodCondition) bool { return c.ObservedGeneration != 0 })
}

func (r podRules) dropContainerStatuses(pod, was *corev1.Pod) {
	if r.resize && r.readOnly && r.health && r.healthMessages && r.users && r.digests {
		return
	}
	old := used{resize: r.resize, readOnly: r.readOnly, health: r.health, messages: r.healthMessages, users: r.users, digests: r.digests}
	old.spec(&was.Spec)
	visitStatuses(&was.Status, old.status)
	visitStatuses(&pod.Status, func(s *corev1.ContainerStatus) {
		if !old.resize {
			s.Resources, s.AllocatedResources = nil, nil
		}
		if !old.readOnly {
			s.VolumeMounts = nil
		}
		if !old.health {
			s.AllocatedResourcesStatus = nil
		}
		for i := range s.AllocatedResourcesStatus {
			for j := range s.AllocatedResourcesStatus[i].Resources {
				if !old.messages {
					s.AllocatedResourcesStatus[i].Resources[j].Message = nil
				}
			}
		}
		if !old.users {
			s.User = nil
		}
		for i := range s.VolumeMounts {
			if !old.digests {
				s.VolumeMounts[i].VolumeStatus = nil
			}
		}
	})
}

// used defines which fields of container statuses stay, since their gates are on or the old pod uses them.
type used struct{ resize, readOnly, health, messages, users, digests bool }

func (u *used) spec(s *corev1.PodSpec) {
	u.users = u.users || s.SecurityContext != nil && s.SecurityContext.SupplementalGroupsPolicy != nil
	podspec.VisitContainers(s, func(c *corev1.Container) {
		u.resize = u.resize || len(c.ResizePolicy) > 0
		for i := range c.VolumeMounts {
			u.readOnly = u.readOnly || c.VolumeMounts[i].RecursiveReadOnly != nil
		}
	})
}

func (u *used) status(s *corev1.ContainerStatus) {
	u.health = u.health || len(s.AllocatedResourcesStatus) > 0
	for i := range s.AllocatedResourcesStatus {
		for j := range s.AllocatedResourcesStatus[i].Resources {
			u.messages = u.messages || s.AllocatedResourcesStatus[i].Resources[j].Message != nil
		}
	}
	for i := range s.VolumeMounts {
		u.digests = u.digests || s.VolumeMounts[i].VolumeStatus != nil
	}
}

func visitStatuses(s *corev1.PodStatus, f func(*corev1.ContainerStatus)) {
	for _, list := range [][]corev1.ContainerStatus{s.ContainerStatuses, s.InitContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			f(&list[i])
		}
	}
}

// ruledChanges is stateChanges where containers have restart policies of their own, and rules that make exceptions.
func (r podRules) ruledChanges(list, old []corev1.ContainerStatus, containers []corev1.Container, pod, was *corev1.Pod, p *field.Path) field.ErrorList {
	if r.spec.PodOptions(pod, was).AllowRestartAll && podspec.RestartsAll(&was.Spec) {
		return nil
	}
	going := make(map[string]bool, len(list))
	for i := range list {
		if list[i].State.Terminated == nil {
			going[list[i].Name] = true
		}
	}
	byName := make(map[string]*corev1.Container, len(containers))
	for i := range containers {
		byName[containers[i].Name] = &containers[i]
	}
	var errs field.ErrorList
	for i := range rules.Until(&errs, old) {
		ended := old[i].State.Terminated
		if ended == nil || !going[old[i].Name] {
			continue
		}
		c := byName[old[i].Name]
		errs = rules.ForbiddenIf(errs, c == nil || !r.restarts(c, was.Spec.RestartPolicy, ended.ExitCode), p.Index(i).Child("state"), "may not be transitioned to non-terminated state")
	}
	return errs
}

// restarts reports whether an ended container restarts: by its rules, or else its own policy, or else that of
// the pod.
func (r podRules) restarts(c *corev1.Container, pod corev1.RestartPolicy, exitCode int32) bool {
	if c.RestartPolicy == nil {
		return starts(string(pod), exitCode)
	}
	for _, rule := range c.RestartPolicyRules {
		if rule.ExitCodes == nil || slices.Contains(rule.ExitCodes.Values, exitCode) != (rule.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpIn) {
			continue
		}
		if rule.Action == corev1.ContainerRestartRuleActionRestart || rule.Action == corev1.ContainerRestartRuleActionRestartAllContainers && r.restartAll {
			return true
		}
		break
	}
	return starts(string(*c.RestartPolicy), exitCode)
}

func starts(policy string, exitCode int32) bool {
	switch policy {
	case string(corev1.RestartPolicyNever):
		return false
	case string(corev1.RestartPolicyOnFailure):
		return exitCode != 0
	}
	return true
}

// extendedClaim checks the claim that was made for extended resources of a pod.
func extendedClaim(pod *corev1.Pod, p *field.Path) field.ErrorList {
	s := pod.Status.ExtendedResourceClaimStatus
	if s == nil {
		return nil
	}
	containers := map[string]*corev1.Container{}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			containers[list[i].Name] = &list[i]
		}
	}
	at := p.Child("requestMappings")
	errs := rules.RequiredIf(nil, len(s.RequestMappings) == 0, at, "at least one request mapping is required")
	seen := rules.Seen[corev1.ContainerExtendedResourceRequest]{}
	for i, m := range rules.Until(&errs, s.RequestMappings) {
		if c := containers[m.ContainerName]; c == nil {
			errs = append(errs, field.Invalid(at.Index(i).Child("containerName"), m.ContainerName, "must match the name of an entry in spec.initContainers.name or spec.containers.name"))
		} else if _, ok := c.Resources.Requests[corev1.ResourceName(m.ResourceName)]; !ok {
			errs = append(errs, field.Invalid(at.Index(i).Child("resourceName"), m.ResourceName, "must match the extended resource name of an entry in spec.initContainers.resources.requests or spec.containers.resources.requests"))
		}
		errs = append(errs, rules.Messages(p.Child("requestName"), m.RequestName, utilvalidation.IsDNS1123Label(m.RequestName))...)
		if seen.Again(m) {
			errs = append(errs, field.Duplicate(at.Index(i).Child("containerName"), m.ContainerName), field.Duplicate(at.Index(i).Child("resourceName"), m.ResourceName),
				field.Duplicate(at.Index(i).Child("requestName"), m.RequestName))
		}
	}
	if s.ResourceClaimName == "" {
		return append(errs, field.Required(p.Child("resourceClaimName"), ""))
	}
	return append(errs, rules.Messages(p.Child("resourceClaimName"), s.ResourceClaimName, validation.NameIsDNSSubdomain(s.ResourceClaimName, false))...)
}

// allocatedClaims checks the resources of the node that a pod has by its claims.
func allocatedClaims(pod *corev1.Pod, p *field.Path) field.ErrorList {
	list := pod.Status.NodeAllocatableResourceClaimStatuses
	if len(list) == 0 {
		return nil
	}
	claims := map[string]bool{}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			claims[*c.ResourceClaimName] = true
		}
	}
	for _, c := range pod.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			claims[*c.ResourceClaimName] = true
		}
	}
	var errs field.ErrorList
	for i := range rules.Until(&errs, list) {
		s, at := &list[i], p.Index(i)
		errs = rules.RequiredIf(errs, s.ResourceClaimName == "", at.Child("resourceClaimName"), "must not be empty")
		errs = rules.InvalidIf(errs, !claims[s.ResourceClaimName], at.Child("resourceClaimName"), s.ResourceClaimName, "no mapping found in pod reference")
		errs = rules.RequiredIf(errs, len(s.Containers) == 0, at.Child("containers"), "must not be empty")
		resources, known := resourcesOfClaim(s)
		errs = rules.RequiredIf(errs, known && len(resources) == 0, at.Child("resources"), "must not be empty")
		for name, q := range resources {
			key := at.Child("resources").Key(string(name))
			errs = rules.InvalidIf(errs, !podspec.IsNativeResource(name), key, name, "must be a node allocatable resource name")
			errs = rules.InvalidIf(errs, q.Sign() < 0, key, q.String(), "must be non-negative")
		}
	}
	return errs
}

// resourcesOfClaim returns the field Resources by its name: v0.37 of the module k8s.io/api, which a program with this
// server may select, does not have the field.
func resourcesOfClaim(s *corev1.NodeAllocatableResourceClaimStatus) (resources map[corev1.ResourceName]resource.Quantity, known bool) {
	f := reflect.ValueOf(s).Elem().FieldByName("Resources")
	if !f.IsValid() {
		return nil, false
	}
	resources, known = f.Interface().(map[corev1.ResourceName]resource.Quantity)
	return resources, known
}

const longestImageRef = 256

// imageStatuses checks which images the image volumes of containers have.
func imageStatuses(pod *corev1.Pod, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	s := &pod.Status
	for _, l := range [...]struct {
		name string
		list []corev1.ContainerStatus
	}{{"containerStatuses", s.ContainerStatuses}, {"initContainerStatuses", s.InitContainerStatuses}, {"ephemeralContainerStatuses", s.EphemeralContainerStatuses}} {
		for i := range l.list {
			for j := range rules.Until(&errs, l.list[i].VolumeMounts) {
				v := l.list[i].VolumeMounts[j].VolumeStatus
				if v == nil || v.Image == nil {
					continue
				}
				at := p.Child(l.name).Index(i).Child("volumeMounts").Index(j).Child("volumeStatus").Child("imageVolumeStatus").Child("imageRef")
				errs = rules.RequiredIf(errs, v.Image.ImageRef == "", at, "imageRef must not be empty")
				if len(v.Image.ImageRef) > longestImageRef {
					errs = append(errs, field.TooLong(at, v.Image.ImageRef, longestImageRef))
				}
			}
		}
	}
	return errs
}

// statusWarnings are for addresses that are not written in their canonical form.
func statusWarnings(pod, _ *corev1.Pod) []string {
	var out []string
	for _, l := range [...]struct {
		name string
		ips  []string
	}{{"podIPs", podIPs(&pod.Status)}, {"hostIPs", hostIPs(&pod.Status)}} {
		for i, ip := range l.ips {
			if len(out) < maxStatusWarnings && rules.IsIP(ip) {
				out = append(out, utilvalidation.GetWarningsForIP(field.NewPath("status", l.name).Index(i).Child("ip"), ip)...)
			}
		}
	}
	return out
}

const maxStatusWarnings = 16
