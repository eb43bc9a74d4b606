package podspec

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
)

// DropDisabled removes fields behind gates that are off, unless old used them, and
// brings the two names of the service account in step. Call it when an object is
// prepared for storage; old is nil on create.
func (r Rules) DropDisabled(s, old *corev1.PodSpec) {
	if old == nil {
		old = &corev1.PodSpec{}
	}
	r.dropPodSecurity(s, old)
	if !r.podResources && (old.Resources == nil || len(old.Resources.Requests)+len(old.Resources.Limits) == 0) {
		s.Resources = nil
	}
	if !r.procMount {
		dropProcMount(s, old)
	}
	if !r.deviceClaims && len(old.ResourceClaims) == 0 {
		s.ResourceClaims = nil
		visitContainers(s, func(c *corev1.Container, _ where) { c.Resources.Claims = nil })
	}
	if !r.resize && !resizePolicyInUse(old) {
		visitContainers(s, func(c *corev1.Container, _ where) { c.ResizePolicy = nil })
	}
	if !r.trustBundles {
		dropTrustBundles(s, old)
	}
	if !r.imageVolumes {
		dropImageVolumes(s, old)
	}
	r.dropScheduling(s, old)
	r.dropContainers(s, old)
	if r.since133 {
		r.dropLater(s, old)
	}
	syncServiceAccount(s)
}

func (r Rules) dropPodSecurity(s, old *corev1.PodSpec) {
	if !r.userNamespaces && old.HostUsers == nil {
		s.HostUsers = nil
	}
	sc, oldSC := s.SecurityContext, old.SecurityContext
	if sc == nil {
		return
	}
	if !r.groupsPolicy && (oldSC == nil || oldSC.SupplementalGroupsPolicy == nil) {
		sc.SupplementalGroupsPolicy = nil
	}
	if !r.seLinuxPolicy && (oldSC == nil || oldSC.SELinuxChangePolicy == nil) {
		sc.SELinuxChangePolicy = nil
	}
}

// dropProcMount turns other mounts into the default one. A nil mount stays nil:
// objects of old servers hold either.
func dropProcMount(s, old *corev1.PodSpec) {
	if anyContainer(old, func(c *corev1.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.ProcMount != nil && *c.SecurityContext.ProcMount != corev1.DefaultProcMount
	}) {
		return
	}
	visitContainers(s, func(c *corev1.Container, _ where) {
		if c.SecurityContext != nil && c.SecurityContext.ProcMount != nil {
			c.SecurityContext.ProcMount = new(corev1.DefaultProcMount)
		}
	})
}

func resizePolicyInUse(s *corev1.PodSpec) bool {
	return anyContainer(s, func(c *corev1.Container) bool { return len(c.ResizePolicy) > 0 })
}

func dropTrustBundles(s, old *corev1.PodSpec) {
	if !anyProjection(old, func(p *corev1.VolumeProjection) bool { return p.ClusterTrustBundle != nil }) {
		visitProjections(s, func(p *corev1.VolumeProjection) { p.ClusterTrustBundle = nil })
	}
}

// dropImageVolumes removes image volumes together with their mounts.
func dropImageVolumes(s, old *corev1.PodSpec) {
	for i := range old.Volumes {
		if old.Volumes[i].Image != nil {
			return
		}
	}
	var dropped map[string]bool
	kept := s.Volumes[:0:0]
	for i := range s.Volumes {
		if s.Volumes[i].Image != nil {
			if dropped == nil {
				dropped = make(map[string]bool)
				kept = append(kept, s.Volumes[:i]...)
			}
			dropped[s.Volumes[i].Name] = true
		} else if dropped != nil {
			kept = append(kept, s.Volumes[i])
		}
	}
	if dropped == nil {
		return
	}
	s.Volumes = kept
	visitContainers(s, func(c *corev1.Container, _ where) {
		var mounts []corev1.VolumeMount
		for _, m := range c.VolumeMounts {
			if !dropped[m.Name] {
				mounts = append(mounts, m)
			}
		}
		c.VolumeMounts = mounts
	})
}

// syncServiceAccount makes the deprecated name follow the current one.
func syncServiceAccount(s *corev1.PodSpec) {
	s.ServiceAccountName = cmp.Or(s.ServiceAccountName, s.DeprecatedServiceAccount)
	s.DeprecatedServiceAccount = s.ServiceAccountName
}
