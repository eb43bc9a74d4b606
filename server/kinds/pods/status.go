package pods

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// prepareStatus takes the status, labels and annotations of the new pod. Owners stay, because old kubelets
// wrote them wrongly. In release 1.32, fields of features whose gates are off stay too, as in a stock server.
func (r podRules) prepareStatus(pod, was *corev1.Pod) {
	pod.DeletionTimestamp = was.DeletionTimestamp
	pod.OwnerReferences = was.OwnerReferences
	pod.Status.QOSClass = cmp.Or(pod.Status.QOSClass, was.Status.QOSClass)
	if r.since133 {
		keepObserved(&pod.Status, &was.Status)
		r.spec.DropDisabled(&pod.Spec, &was.Spec)
		r.dropStatus(pod, was)
	}
}

func (r podRules) validateStatus(pod, was *corev1.Pod) field.ErrorList {
	errs := annotationUpdate(pod, was, r.spec.PodOptions(pod, was))
	errs = append(errs, r.conditionTypes(pod.Status.Conditions)...)
	p := field.NewPath("status")
	if name := pod.Status.NominatedNodeName; name != was.Status.NominatedNodeName && name != "" {
		for _, m := range validation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(p.Child("nominatedNodeName"), name, m))
		}
	}
	if r.clearNominated && was.Spec.NodeName != "" && pod.Status.NominatedNodeName != "" {
		errs = rules.ForbiddenIf(errs, pod.Status.NominatedNodeName != was.Status.NominatedNodeName, p.Child("nominatedNodeName"), "may not be set on pods that are already bound to a node")
	}
	errs = rules.InvalidIf(errs, r.since133 && pod.Status.ObservedGeneration < 0, p.Child("observedGeneration"), pod.Status.ObservedGeneration, notNegative)
	errs = rules.InvalidIf(errs, pod.Status.QOSClass != was.Status.QOSClass, p.Child("qosClass"), pod.Status.QOSClass, validation.FieldImmutableErrorMsg)
	errs = append(errs, r.containerStates(pod, was, p)...)
	errs = append(errs, r.claimStatuses(pod, p.Child("resourceClaimStatuses"))...)
	if r.since133 {
		errs = append(errs, extendedClaim(pod, p.Child("extendedResourceClaimStatus"))...)
		errs = append(errs, allocatedClaims(pod, p.Child("nodeAllocatableResourceClaimStatuses"))...)
	}
	errs = append(errs, r.podAddresses(&pod.Status, &was.Status, p.Child("podIPs"))...)
	errs = append(errs, r.hostAddresses(&pod.Status, &was.Status, p.Child("hostIPs"))...)
	return append(errs, r.containerStatuses(pod, p)...)
}

// conditionTypes checks the names of conditions other than the platform's. The path is that of a stock
// server.
func (r podRules) conditionTypes(list []corev1.PodCondition) field.ErrorList {
	var errs field.ErrorList
	p := field.NewPath("metadata").Child("conditions")
	if r.since133 {
		p = field.NewPath("status").Child("conditions")
	}
	for i := range rules.Until(&errs, list) {
		errs = rules.InvalidIf(errs, r.since133 && list[i].ObservedGeneration < 0, p.Index(i).Child("observedGeneration"), list[i].ObservedGeneration, notNegative)
		switch t := list[i].Type; t {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady:
		default:
			if msgs := utilvalidation.IsQualifiedName(string(t)); len(msgs) > 0 {
				for _, m := range msgs {
					errs = append(errs, field.Invalid(p.Index(i).Child("Type"), string(t), m))
				}
			}
		}
	}
	return errs
}

// sidecars names the init containers that may start again.
func sidecars(s *corev1.PodSpec) map[string]bool {
	var names map[string]bool
	for i := range s.InitContainers {
		if podspec.Restartable(&s.InitContainers[i]) {
			if names == nil {
				names = make(map[string]bool)
			}
			names[s.InitContainers[i].Name] = true
		}
	}
	return names
}

// stateChanges keeps containers ended that ended and are not started again.
func stateChanges(list, old []corev1.ContainerStatus, p *field.Path, restart corev1.RestartPolicy, restartable map[string]bool) field.ErrorList {
	if restart == corev1.RestartPolicyAlways {
		return nil
	}
	var errs field.ErrorList
	going := make(map[string]int, len(list)) // how many of a name have not ended
	for j := range list {
		if list[j].State.Terminated == nil {
			going[list[j].Name]++
		}
	}
	for i := range old {
		ended := old[i].State.Terminated
		if ended == nil || ended.ExitCode != 0 && restart == corev1.RestartPolicyOnFailure || restartable[old[i].Name] {
			continue
		}
		for range going[old[i].Name] {
			if len(errs) > rules.MaxErrors {
				return errs
			}
			errs = append(errs, field.Forbidden(p.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return errs
}

const notNegative = "must be a non-negative integer"

// containerStates keeps containers ended that ended and are not started again.
func (r podRules) containerStates(pod, was *corev1.Pod, p *field.Path) field.ErrorList {
	now, before, restart := &pod.Status, &was.Status, was.Spec.RestartPolicy
	var errs field.ErrorList
	if r.spec.PodOptions(pod, was).AllowRestartRules {
		errs = append(errs, r.ruledChanges(now.ContainerStatuses, before.ContainerStatuses, was.Spec.Containers, pod, was, p.Child("containerStatuses"))...)
		errs = append(errs, r.ruledChanges(now.InitContainerStatuses, before.InitContainerStatuses, was.Spec.InitContainers, pod, was, p.Child("initContainerStatuses"))...)
	} else {
		errs = append(errs, stateChanges(now.ContainerStatuses, before.ContainerStatuses, p.Child("containerStatuses"), restart, nil)...)
		errs = append(errs, stateChanges(now.InitContainerStatuses, before.InitContainerStatuses, p.Child("initContainerStatuses"), restart, sidecars(&was.Spec))...)
	}
	return append(errs, stateChanges(now.EphemeralContainerStatuses, before.EphemeralContainerStatuses, p.Child("ephemeralContainerStatuses"), corev1.RestartPolicyNever, nil)...)
}

const oneEachFamily = "may specify no more than one IP for each IP family"

func (r podRules) podAddresses(s, old *corev1.PodStatus, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	ips := podIPs(s)
	errs = append(errs, r.addresses(ips, podIPs(old), p)...)
	if len(ips) < 2 {
		return errs
	}
	errs = append(errs, families(ips, s.PodIPs, p)...)
	if r.since133 { // they are of two families, hence no two are the same
		return errs
	}
	return append(errs, repeated(ips, p, func(i int) any { return rules.Shown(s.PodIPs[i]) })...)
}

func (r podRules) hostAddresses(s, old *corev1.PodStatus, p *field.Path) field.ErrorList {
	if len(s.HostIPs) == 0 {
		return nil
	}
	var errs field.ErrorList
	if s.HostIP != s.HostIPs[0].IP {
		errs = append(errs, field.Invalid(p.Index(0).Child("ip"), s.HostIPs[0].IP, "must be equal to `hostIP`"))
	}
	ips := hostIPs(s)
	errs = append(errs, r.addresses(ips, hostIPs(old), p)...)
	if len(ips) < 2 {
		return errs
	}
	if !r.since133 {
		errs = append(errs, repeated(ips, p, func(i int) any { return rules.Shown(s.HostIPs[i]) })...)
	}
	return append(errs, families(ips, s.HostIPs, p)...)
}

// addresses checks those that are not in old.
func (r podRules) addresses(ips, old []string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !r.since133 {
		old = nil
	}
	for i, ip := range rules.Until(&errs, ips) {
		errs = append(errs, utilvalidation.IsValidIPForLegacyField(p.Index(i), ip, r.strictIPs, old)...)
	}
	return errs
}

func podIPs(s *corev1.PodStatus) []string {
	ips := make([]string, len(s.PodIPs))
	for i := range s.PodIPs {
		ips[i] = s.PodIPs[i].IP
	}
	return ips
}

func hostIPs(s *corev1.PodStatus) []string {
	ips := make([]string, len(s.HostIPs))
	for i := range s.HostIPs {
		ips[i] = s.HostIPs[i].IP
	}
	return ips
}

// families allows one address of each family. list is the value in the error.
func families(ips []string, list any, p *field.Path) field.ErrorList {
	v4, v6 := 0, 0
	for i, ip := range ips {
		switch {
		case !rules.IsIP(ip):
			return field.ErrorList{
				field.InternalError(p, fmt.Errorf("failed to check for dual stack with error:invalid IP[%d]: %v", i, ip)),
				field.Invalid(p, rules.Shown(list), oneEachFamily),
			}
		case strings.Contains(ip, ":"):
			v6++
		default:
			v4++
		}
	}
	if v4 != 1 || v6 != 1 {
		return field.ErrorList{field.Invalid(p, rules.Shown(list), oneEachFamily)}
	}
	return nil
}

func repeated(ips []string, p *field.Path, value func(i int) any) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]bool, len(ips))
	for i, ip := range rules.Until(&errs, ips) {
		if seen[ip] {
			errs = append(errs, field.Duplicate(p.Index(i), value(i)))
		}
		seen[ip] = true
	}
	return errs
}
