package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	messagePolicies  = []corev1.TerminationMessagePolicy{corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError}
	pullPolicies     = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	resizeResources  = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}
	resizeRestarting = []corev1.ResourceResizeRestartPolicy{corev1.NotRequired, corev1.RestartContainer}
)

// podScope is the part of a pod that containers depend on.
type podScope struct {
	spec        *corev1.PodSpec
	volumes     volumeSet
	claims      *claimNames // names of spec.resourceClaims
	gracePeriod *int64
	hostUsers   bool
}

// containers checks the regular containers. p is the path of the list.
func (c *checker) containers(s *podScope, p *field.Path) {
	list := s.spec.Containers
	if len(list) == 0 {
		c.required(p, "")
		return
	}
	var names nameSet
	for i := range list {
		ctr, path := &list[i], p.Index(i)
		c.container(ctr, s, path)
		if names.has(ctr.Name) {
			c.duplicate(path.Child("name"), ctr.Name)
		} else {
			names.add(ctr.Name)
		}
		c.lifecycleAndProbes(ctr, s, path)
		if c.o.AllowRestartRules {
			c.restartRules(ctr, path)
		} else {
			c.forbiddenIf(ctr.RestartPolicy != nil, path, "restartPolicy", "may not be set for non-init containers")
		}
	}
	c.hostPorts(list, p)
}

// initContainers checks those that run before the regular ones, and sidecars.
func (c *checker) initContainers(s *podScope, p *field.Path) {
	list := s.spec.InitContainers
	if len(list) == 0 {
		return
	}
	var names nameSet
	for i := range s.spec.Containers {
		names.add(s.spec.Containers[i].Name)
	}
	for i := range list {
		ctr, path := &list[i], p.Index(i)
		c.container(ctr, s, path)
		c.initRestartPolicy(ctr, path)
		if names.has(ctr.Name) {
			c.duplicate(path.Child("name"), ctr.Name)
		} else if ctr.Name != "" {
			names.add(ctr.Name)
		}
		// Init containers run one by one, so each is checked alone.
		c.hostPorts(list[i:i+1], p)
		if Restartable(ctr) {
			c.lifecycleAndProbes(ctr, s, path)
		} else {
			c.noLifecycle(ctr, path)
		}
		if len(ctr.ResizePolicy) > 0 && !c.o.AllowInitResizePolicy {
			c.invalid(path.Child("resizePolicy"), rules.Shown(ctr.ResizePolicy), "must not be set for init containers")
		}
		if c.o.Since133 && !c.o.AllowInitRestartOnResize && !Restartable(ctr) {
			for j, r := range ctr.ResizePolicy {
				invalidIf(c, r.RestartPolicy == corev1.RestartContainer, path.Child("resizePolicy").Index(j), "restartPolicy", r.RestartPolicy, "must not be set to 'RestartContainer' for non-sidecar initContainers")
			}
		}
	}
}

func (c *checker) noLifecycle(ctr *corev1.Container, p *field.Path) {
	const detail = "may not be set for init containers without restartPolicy=Always"
	c.forbiddenIf(ctr.Lifecycle != nil, p, "lifecycle", detail)
	c.forbiddenIf(ctr.LivenessProbe != nil, p, "livenessProbe", detail)
	c.forbiddenIf(ctr.ReadinessProbe != nil, p, "readinessProbe", detail)
	c.forbiddenIf(ctr.StartupProbe != nil, p, "startupProbe", detail)
}

// ephemeralContainers checks those that were added to a running pod.
func (c *checker) ephemeralContainers(s *podScope, p *field.Path) {
	list := s.spec.EphemeralContainers
	if len(list) == 0 {
		return
	}
	var others, names nameSet
	for i := range s.spec.Containers {
		others.add(s.spec.Containers[i].Name)
		names.add(s.spec.Containers[i].Name)
	}
	for i := range s.spec.InitContainers {
		others.add(s.spec.InitContainers[i].Name)
		names.add(s.spec.InitContainers[i].Name)
	}
	for i := range list {
		ec, path := &list[i], p.Index(i)
		ctr := asContainer(ec)
		c.container(ctr, s, path)
		c.imageSpaces(ctr, path)
		if names.has(ec.Name) {
			c.duplicate(path.Child("name"), ec.Name)
		} else {
			names.add(ec.Name)
		}
		if ec.TargetContainerName != "" && !others.has(ec.TargetContainerName) {
			c.add(field.NotFound(path.Child("targetContainerName"), ec.TargetContainerName))
		}
		c.ephemeralFields(ctr, path)
	}
}

// ephemeralFields refuses fields that make a container part of a pod's service: ephemeral containers are for
// debugging.
func (c *checker) ephemeralFields(ctr *corev1.Container, p *field.Path) {
	const detail = "cannot be set for an Ephemeral Container"
	for _, f := range [...]struct {
		set  bool
		name string
	}{
		{ctr.Ports != nil, "ports"},
		{ctr.Resources.Limits != nil || ctr.Resources.Requests != nil || ctr.Resources.Claims != nil, "resources"},
		{ctr.ResizePolicy != nil, "resizePolicy"},
		{ctr.RestartPolicy != nil, "restartPolicy"},
		{ctr.RestartPolicyRules != nil, "restartPolicyRules"},
		{ctr.LivenessProbe != nil, "livenessProbe"},
		{ctr.ReadinessProbe != nil, "readinessProbe"},
		{ctr.StartupProbe != nil, "startupProbe"},
		{ctr.Lifecycle != nil, "lifecycle"},
	} {
		c.forbiddenIf(f.set, p, f.name, detail)
	}
	for i := range ctr.VolumeMounts {
		if ctr.VolumeMounts[i].SubPath != "" {
			c.forbidden(p.Child("volumeMounts").Index(i).Child("subPath"), detail)
		}
		if ctr.VolumeMounts[i].SubPathExpr != "" {
			c.forbidden(p.Child("volumeMounts").Index(i).Child("subPathExpr"), detail)
		}
	}
}

// container checks the common fields of all containers.
func (c *checker) container(ctr *corev1.Container, s *podScope, p *field.Path) {
	c.requiredThen(ctr.Name, p, "name", c.dnsLabel)
	c.requiredIf(ctr.Image == "", p, "image", "")
	requiredOneOf(c, p, "terminationMessagePolicy", ctr.TerminationMessagePolicy, messagePolicies)
	if len(ctr.Ports) > 0 {
		c.ports(ctr.Ports, p.Child("ports"))
	}
	if len(ctr.Env) > 0 {
		c.env(ctr.Env, p.Child("env"))
	}
	if len(ctr.EnvFrom) > 0 {
		c.envFrom(ctr.EnvFrom, p.Child("envFrom"))
	}
	if len(ctr.VolumeMounts) > 0 {
		c.mounts(ctr, s.volumes, p.Child("volumeMounts"))
	}
	if len(ctr.VolumeDevices) > 0 {
		c.devices(ctr, s.volumes, p.Child("volumeDevices"))
	}
	c.pullPolicy(ctr.ImagePullPolicy, p, "imagePullPolicy")
	c.resources(&ctr.Resources, s.claims, p, "resources")
	if len(ctr.ResizePolicy) > 0 {
		c.resizePolicy(ctr.ResizePolicy, p.Child("resizePolicy"), s.spec.RestartPolicy)
	}
	if ctr.SecurityContext != nil {
		c.securityContext(ctr.SecurityContext, p.Child("securityContext"), s.hostUsers)
	}
}

func (c *checker) pullPolicy(policy corev1.PullPolicy, p *field.Path, child string) {
	if policy == "" {
		c.required(p.Child(child), "")
		return
	}
	oneOf(c, p, child, policy, pullPolicies)
}

func (c *checker) resizePolicy(list []corev1.ContainerResizePolicy, p *field.Path, restart corev1.RestartPolicy) {
	var seen nameSet
	for i, r := range list {
		if seen.has(string(r.ResourceName)) {
			c.duplicate(p.Index(i), r.ResourceName)
		}
		seen.add(string(r.ResourceName))
		requiredOneOf(c, p, "", r.ResourceName, resizeResources)
		requiredOneOf(c, p, "", r.RestartPolicy, resizeRestarting)
		if restart == corev1.RestartPolicyNever && r.RestartPolicy != corev1.NotRequired {
			detail := "must be 'NotRequired' when `restartPolicy` is 'Never'"
			if c.o.Since133 {
				detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
			}
			c.invalid(p, r.RestartPolicy, detail)
		}
	}
}

// imageSpaces is for pods only: templates with padded images are as old as templates.
func (c *checker) imageSpaces(ctr *corev1.Container, p *field.Path) {
	invalidIf(c, padded(ctr.Image), p, "image", ctr.Image, "must not have leading or trailing whitespace")
}

func padded(image string) bool { return len(image) != len(strings.TrimSpace(image)) }
