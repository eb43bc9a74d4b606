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

// prepareStatus takes the status, labels and annotations of the new pod. Owners
// stay: node agents of old wrote them wrongly. What node agents say of features whose gates
// are off stays too, as it does in a stock server.
func (r podRules) prepareStatus(pod, was *corev1.Pod) {
	pod.DeletionTimestamp = was.DeletionTimestamp
	pod.OwnerReferences = was.OwnerReferences
	pod.Status.QOSClass = cmp.Or(pod.Status.QOSClass, was.Status.QOSClass)
}

func (r podRules) validateStatus(pod, was *corev1.Pod) field.ErrorList {
	errs := annotationUpdate(pod, was, r.spec.PodOptions(pod, was))
	errs = append(errs, conditionTypes(pod.Status.Conditions)...)
	p := field.NewPath("status")
	if name := pod.Status.NominatedNodeName; name != was.Status.NominatedNodeName && name != "" {
		for _, m := range validation.NameIsDNSSubdomain(name, false) {
			errs = append(errs, field.Invalid(p.Child("nominatedNodeName"), name, m))
		}
	}
	errs = rules.InvalidIf(errs, pod.Status.QOSClass != was.Status.QOSClass, p.Child("qosClass"), pod.Status.QOSClass, validation.FieldImmutableErrorMsg)
	restart := was.Spec.RestartPolicy
	errs = append(errs, stateChanges(pod.Status.ContainerStatuses, was.Status.ContainerStatuses, p.Child("containerStatuses"), restart, nil)...)
	errs = append(errs, stateChanges(pod.Status.InitContainerStatuses, was.Status.InitContainerStatuses, p.Child("initContainerStatuses"), restart, sidecars(&was.Spec))...)
	errs = append(errs, stateChanges(pod.Status.EphemeralContainerStatuses, was.Status.EphemeralContainerStatuses, p.Child("ephemeralContainerStatuses"), corev1.RestartPolicyNever, nil)...)
	errs = append(errs, claimStatuses(pod, p.Child("resourceClaimStatuses"))...)
	errs = append(errs, podAddresses(&pod.Status, p.Child("podIPs"))...)
	errs = append(errs, hostAddresses(&pod.Status, p.Child("hostIPs"))...)
	return append(errs, containerStatuses(pod, p)...)
}

// conditionTypes checks the names of conditions that others than the platform
// set. The path is that of a stock server.
func conditionTypes(list []corev1.PodCondition) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		switch t := list[i].Type; t {
		case corev1.PodScheduled, corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady:
		default:
			if msgs := utilvalidation.IsQualifiedName(string(t)); len(msgs) > 0 {
				for _, m := range msgs {
					errs = append(errs, field.Invalid(field.NewPath("metadata").Child("conditions").Index(i).Child("Type"), string(t), m))
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
			if len(errs) > rules.Enough {
				return errs
			}
			errs = append(errs, field.Forbidden(p.Index(i).Child("state"), "may not be transitioned to non-terminated state"))
		}
	}
	return errs
}

const oneEachFamily = "may specify no more than one IP for each IP family"

func podAddresses(s *corev1.PodStatus, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	ips := make([]string, len(s.PodIPs))
	for i := range s.PodIPs {
		ips[i] = s.PodIPs[i].IP
		errs = append(errs, rules.IP(ips[i], p.Index(i))...)
	}
	if len(ips) < 2 {
		return errs
	}
	errs = append(errs, families(ips, s.PodIPs, p)...)
	return append(errs, repeated(ips, p, func(i int) any { return rules.Shown(s.PodIPs[i]) })...)
}

func hostAddresses(s *corev1.PodStatus, p *field.Path) field.ErrorList {
	if len(s.HostIPs) == 0 {
		return nil
	}
	var errs field.ErrorList
	if s.HostIP != s.HostIPs[0].IP {
		errs = append(errs, field.Invalid(p.Index(0).Child("ip"), s.HostIPs[0].IP, "must be equal to `hostIP`"))
	}
	ips := make([]string, len(s.HostIPs))
	for i := range s.HostIPs {
		ips[i] = s.HostIPs[i].IP
		errs = append(errs, rules.IP(ips[i], p.Index(i))...)
	}
	if len(ips) < 2 {
		return errs
	}
	errs = append(errs, repeated(ips, p, func(i int) any { return rules.Shown(s.HostIPs[i]) })...)
	return append(errs, families(ips, s.HostIPs, p)...)
}

// families allows one address of each family. list is what the error shows.
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
	for i, ip := range ips {
		if seen[ip] {
			errs = append(errs, field.Duplicate(p.Index(i), value(i)))
		}
		seen[ip] = true
	}
	return errs
}
