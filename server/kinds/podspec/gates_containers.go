package podspec

import corev1 "k8s.io/api/core/v1"

// dropScheduling removes fields of affinity and spreading whose gates were switched off.
func (r Rules) dropScheduling(s, old *corev1.PodSpec) {
	if !r.affinityKeys {
		used := false
		visitPodAffinityTerms(old, func(t *corev1.PodAffinityTerm) {
			used = used || len(t.MatchLabelKeys)+len(t.MismatchLabelKeys) > 0
		})
		if !used {
			visitPodAffinityTerms(s, func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys, t.MismatchLabelKeys = nil, nil })
		}
	}
	keys, policies := r.spreadKeys, r.inclusionPolicies
	for i := range old.TopologySpreadConstraints {
		c := &old.TopologySpreadConstraints[i]
		keys = keys || len(c.MatchLabelKeys) > 0
		policies = policies || c.NodeAffinityPolicy != nil || c.NodeTaintsPolicy != nil
	}
	for i := range s.TopologySpreadConstraints {
		c := &s.TopologySpreadConstraints[i]
		if !keys {
			c.MatchLabelKeys = nil
		}
		if !policies {
			c.NodeAffinityPolicy, c.NodeTaintsPolicy = nil, nil
		}
	}
}

// dropContainers removes fields of containers whose gates were switched off.
func (r Rules) dropContainers(s, old *corev1.PodSpec) {
	if r.sidecars && r.sleep && r.recursiveReadOnly {
		return
	}
	sidecars, sleep, readOnly := r.sidecars, r.sleep, r.recursiveReadOnly
	visitContainers(old, func(c *corev1.Container, w where) {
		sidecars = sidecars || w.list == "initContainers" && c.RestartPolicy != nil
		sleep = sleep || sleeps(c.Lifecycle)
		for i := range c.VolumeMounts {
			readOnly = readOnly || c.VolumeMounts[i].RecursiveReadOnly != nil
		}
	})
	visitContainers(s, func(c *corev1.Container, w where) {
		if !sidecars && w.list == "initContainers" {
			c.RestartPolicy = nil
		}
		if !sleep && c.Lifecycle != nil {
			dropSleep(c.Lifecycle)
		}
		for i := range c.VolumeMounts {
			if !readOnly {
				c.VolumeMounts[i].RecursiveReadOnly = nil
			}
		}
	})
}

func sleeps(l *corev1.Lifecycle) bool {
	return l != nil && (l.PreStop != nil && l.PreStop.Sleep != nil || l.PostStart != nil && l.PostStart.Sleep != nil)
}

func dropSleep(l *corev1.Lifecycle) {
	for _, h := range []*corev1.LifecycleHandler{l.PreStop, l.PostStart} {
		if h != nil {
			h.Sleep = nil
		}
	}
}
