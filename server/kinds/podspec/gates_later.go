package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// dropLater removes fields that came after release 1.32 and whose gates are off.
func (r Rules) dropLater(s, old *corev1.PodSpec) {
	if !r.restartRules && !restartRulesInUse(old) {
		dropRestartRules(s)
	}
	if !r.hostname && old.HostnameOverride == nil {
		s.HostnameOverride = nil
	}
	if !r.groups && old.SchedulingGroup == nil {
		s.SchedulingGroup = nil
	}
	if !r.envFiles && !envFilesInUse(old) {
		visitEnvFiles(s, func(from *corev1.EnvVarSource) { from.FileKeyRef = nil })
	}
	if !r.stopSignals && !stopSignalsInUse(old) {
		dropStopSignals(s)
	}
	if !r.podCertificates {
		dropPodCertificates(s, old)
	}
}

// restartRulesInUse reports whether containers have restart policies of their own, apart from sidecars.
func restartRulesInUse(s *corev1.PodSpec) bool {
	if s == nil {
		return false
	}
	return slices.ContainsFunc(s.InitContainers, func(c corev1.Container) bool {
		return c.RestartPolicy != nil && !Restartable(&c) || len(c.RestartPolicyRules) > 0
	}) || slices.ContainsFunc(s.Containers, func(c corev1.Container) bool { return c.RestartPolicy != nil })
}

func dropRestartRules(s *corev1.PodSpec) {
	visitContainers(s, func(c *corev1.Container, w where) {
		c.RestartPolicyRules = nil
		if w.list != "initContainers" || !Restartable(c) {
			c.RestartPolicy = nil
		}
	})
}

// restartAllInUse reports whether the end of a container may restart all, or sidecars have rules for their ends.
func restartAllInUse(s *corev1.PodSpec) bool {
	return s != nil && (RestartsAll(s) || slices.ContainsFunc(s.InitContainers, func(c corev1.Container) bool {
		return Restartable(&c) && len(c.RestartPolicyRules) > 0
	}))
}

// RestartsAll reports whether the end of some container may restart all of them.
func RestartsAll(s *corev1.PodSpec) bool {
	all := func(c corev1.Container) bool {
		return slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
			return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
		})
	}
	return slices.ContainsFunc(s.InitContainers, all) || slices.ContainsFunc(s.Containers, all)
}

// visitEnvFiles calls f for the sources of variables that are read from files.
func visitEnvFiles(s *corev1.PodSpec, f func(*corev1.EnvVarSource)) {
	visitContainers(s, func(c *corev1.Container, _ where) {
		for i := range c.Env {
			if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
				f(from)
			}
		}
	})
}

func envFilesInUse(s *corev1.PodSpec) bool {
	used := false
	if s != nil {
		visitEnvFiles(s, func(*corev1.EnvVarSource) { used = true })
	}
	return used
}

func stopSignalsInUse(s *corev1.PodSpec) bool {
	return anyContainer(s, func(c *corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.StopSignal != nil })
}

func dropStopSignals(s *corev1.PodSpec) {
	visitContainers(s, func(c *corev1.Container, _ where) {
		if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
			return
		}
		if c.Lifecycle.StopSignal = nil; *c.Lifecycle == (corev1.Lifecycle{}) {
			c.Lifecycle = nil
		}
	})
}

func dropPodCertificates(s, old *corev1.PodSpec) {
	if !anyProjection(old, func(p *corev1.VolumeProjection) bool { return p.PodCertificate != nil }) {
		visitProjections(s, func(p *corev1.VolumeProjection) { p.PodCertificate = nil })
	}
}

// initRestartOnResizeInUse reports whether init containers that end are to be restarted to resize them.
func initRestartOnResizeInUse(s *corev1.PodSpec) bool {
	return slices.ContainsFunc(s.InitContainers, func(c corev1.Container) bool {
		return !Restartable(&c) && slices.ContainsFunc(c.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
			return p.RestartPolicy == corev1.RestartContainer
		})
	})
}
