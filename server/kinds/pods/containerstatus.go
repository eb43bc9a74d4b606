package pods

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ofEphemeral is the field of the status that has the states of ephemeral containers.
const ofEphemeral = "ephemeralContainerStatuses"

// claimStatuses checks which claims were made for a pod.
func (r podRules) claimStatuses(pod *corev1.Pod, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen, claims := rules.Seen[string]{}, map[string]bool{}
	for i := range pod.Spec.ResourceClaims {
		claims[pod.Spec.ResourceClaims[i].Name] = true
	}
	for i := range rules.Until(&errs, pod.Status.ResourceClaimStatuses) {
		s, at := &pod.Status.ResourceClaimStatuses[i], p.Index(i).Child("name")
		errs = rules.InvalidIf(errs, !claims[s.Name], at, s.Name, "must match the name of an entry in `spec.resourceClaims`")
		errs = rules.DuplicateIf(errs, seen.Again(s.Name), at, s.Name)
		if s.ResourceClaimName != nil {
			if r.since133 {
				at = p.Index(i).Child("resourceClaimName")
			}
			errs = append(errs, rules.Messages(at, *s.ResourceClaimName, validation.NameIsDNSSubdomain(*s.ResourceClaimName, false))...)
		}
	}
	return errs
}

// containerStatuses checks the reports of kubelets about containers apart from their state.
func (r podRules) containerStatuses(pod *corev1.Pod, p *field.Path) field.ErrorList {
	ephemeral := make([]corev1.Container, len(pod.Spec.EphemeralContainers))
	for i := range ephemeral {
		ephemeral[i] = corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
	}
	lists := [...]struct {
		name       string
		statuses   []corev1.ContainerStatus
		containers []corev1.Container
	}{
		{"containerStatuses", pod.Status.ContainerStatuses, pod.Spec.Containers},
		{"initContainerStatuses", pod.Status.InitContainerStatuses, pod.Spec.InitContainers},
		{ofEphemeral, pod.Status.EphemeralContainerStatuses, ephemeral},
	}
	windows := pod.Spec.OS != nil && pod.Spec.OS.Name == corev1.Windows
	var errs field.ErrorList
	for _, l := range lists {
		for i := range rules.Until(&errs, l.statuses) {
			at := p.Child(l.name).Index(i)
			if r.since133 {
				at = at.Child("user")
			}
			errs = append(errs, containerUser(l.statuses[i].User, windows, at.Child("linux"))...)
		}
	}
	for _, l := range lists {
		asked := &requirements{containers: l.containers}
		for i := range rules.Until(&errs, l.statuses) {
			if l.name == ofEphemeral {
				forbidden := len(l.statuses[i].AllocatedResourcesStatus) > 0
				errs = rules.ForbiddenIf(errs, forbidden, p.Child(l.name).Index(i).Child("allocatedResourcesStatus"), "must not be specified in container status")
				continue
			}
			errs = append(errs, resourceHealth(&l.statuses[i], asked, p.Child(l.name).Index(i).Child("allocatedResourcesStatus"))...)
		}
	}
	if r.digests {
		errs = append(errs, imageStatuses(pod, p)...)
	}
	return errs
}

// containerUser checks the user of a container. The path is that of a stock server.
func containerUser(u *corev1.ContainerUser, windows bool, p *field.Path) field.ErrorList {
	switch {
	case u == nil || u.Linux == nil:
		return nil
	case windows:
		return field.ErrorList{field.Forbidden(p, "cannot be set for a windows pod")}
	}
	errs := rules.Messages(p.Child("uid"), u.Linux.UID, utilvalidation.IsValidUserID(u.Linux.UID))
	errs = append(errs, rules.Messages(p.Child("gid"), u.Linux.GID, utilvalidation.IsValidGroupID(u.Linux.GID))...)
	for i, g := range rules.Until(&errs, u.Linux.SupplementalGroups) {
		errs = append(errs, rules.Messages(p.Child("supplementalGroups").Index(i), g, utilvalidation.IsValidGroupID(g))...)
	}
	return errs
}

// healthy are the words for the health of a device.
var healthy = []corev1.ResourceHealthStatus{corev1.ResourceHealthStatusHealthy, corev1.ResourceHealthStatusUnhealthy, corev1.ResourceHealthStatusUnknown}

// resourceHealth checks the health of the resources that a container requests.
func resourceHealth(s *corev1.ContainerStatus, asked *requirements, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules.Until(&errs, s.AllocatedResourcesStatus) {
		r, at := &s.AllocatedResourcesStatus[i], p.Index(i)
		for _, c := range asked.of(s.Name) {
			errs = append(errs, c.asksFor(r.Name, at.Child("name"))...)
		}
		ids := rules.Seen[corev1.ResourceID]{}
		for j, h := range rules.Until(&errs, r.Resources) {
			if !slices.Contains(healthy, h.Health) {
				errs = append(errs, field.NotSupported(at.Child("resources").Index(j).Child("health"), h.Health, healthy))
			}
			if m, path := h.Message, at.Child("resources").Index(j).Child("message"); m != nil {
				errs = rules.RequiredIf(errs, *m == "", path, "must be non-empty if specified")
				if len(*m) > corev1.ResourceHealthMessageMaxLength {
					errs = append(errs, field.TooLong(path, *m, corev1.ResourceHealthMessageMaxLength))
				}
			}
			errs = rules.DuplicateIf(errs, ids.Again(h.ResourceID), at.Child("resources").Index(j).Child("resourceID"), h.ResourceID)
		}
	}
	return errs
}

// requirements are the resources of containers, by name.
type requirements struct {
	containers []corev1.Container
	named      map[string][]requirement // made when it is needed
}

// requirement is the resource requirements of a container.
type requirement struct {
	*corev1.ResourceRequirements
	claims map[string]bool // with their requests
}

func (r *requirements) of(name string) []requirement {
	if r.named == nil {
		r.named = make(map[string][]requirement, len(r.containers))
		for i := range r.containers {
			c := &r.containers[i]
			one := requirement{&c.Resources, make(map[string]bool, len(c.Resources.Claims))}
			for _, claim := range c.Resources.Claims {
				name := claim.Name
				if claim.Request != "" { // then the whole claim is none of the container's
					name += "/" + claim.Request
				}
				one.claims[name] = true
			}
			r.named[c.Name] = append(r.named[c.Name], one)
		}
	}
	return r.named[name]
}

func (r *requirement) asksFor(name corev1.ResourceName, p *field.Path) field.ErrorList {
	if claim, ok := strings.CutPrefix(string(name), "claim:"); ok {
		return rules.InvalidIf(nil, !r.claims[claim], p, name, "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty")
	}
	if _, ok := r.Requests[name]; !ok {
		return field.ErrorList{field.Invalid(p, name, "must match one of the container's resource requests")}
	}
	return nil
}
