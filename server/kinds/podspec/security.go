package podspec

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

var (
	procMounts       = []corev1.ProcMountType{corev1.DefaultProcMount, corev1.UnmaskedProcMount}
	groupPolicies    = []corev1.PodFSGroupChangePolicy{corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch}
	seccompTypes     = []corev1.SeccompProfileType{corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined}
	appArmorTypes    = []corev1.AppArmorProfileType{corev1.AppArmorProfileTypeLocalhost, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined}
	sysctlName       = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)
	supplementPolicy = []corev1.SupplementalGroupsPolicy{corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict}
	recursiveOnly    = []corev1.PodSELinuxChangePolicy{corev1.SELinuxChangePolicyRecursive}
	changePolicies   = []corev1.PodSELinuxChangePolicy{corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive}
)

const maxSysctlName = 253

// securityContext checks that of a container.
func (c *checker) securityContext(s *corev1.SecurityContext, p *field.Path, hostUsers bool) {
	c.forbiddenIf(c.o.NoPrivileged && s.Privileged != nil && *s.Privileged, p, "privileged", "disallowed by cluster policy")
	c.userID(s.RunAsUser, p)
	c.groupID(s.RunAsGroup, p, "runAsGroup")
	if s.ProcMount != nil {
		oneOf(c, p, "procMount", *s.ProcMount, procMounts)
		invalidIf(c, hostUsers && *s.ProcMount == corev1.UnmaskedProcMount, p, "procMount", s.ProcMount, "`hostUsers` must be false to use `Unmasked`")
	}
	c.seccomp(s.SeccompProfile, p)
	if s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation {
		if s.Privileged != nil && *s.Privileged {
			c.invalid(p, rules.Shown(*s), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
		}
		if s.Capabilities != nil {
			for _, capability := range s.Capabilities.Add {
				if capability == "CAP_SYS_ADMIN" {
					c.invalid(p, rules.Shown(*s), "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
				}
			}
		}
	}
	if s.WindowsOptions != nil {
		c.windowsOptions(s.WindowsOptions, p.Child("windowsOptions"))
	}
	c.appArmor(s.AppArmorProfile, p)
}

// podSecurityContext checks that of a pod. p is the path of the spec.
func (c *checker) podSecurityContext(spec *corev1.PodSpec, p *field.Path) {
	s := spec.SecurityContext
	share := spec.ShareProcessNamespace != nil && spec.HostPID && *spec.ShareProcessNamespace
	if s == nil {
		s = &corev1.PodSecurityContext{}
	}
	p = p.Child("securityContext")
	c.groupID(s.FSGroup, p, "fsGroup")
	c.userID(s.RunAsUser, p)
	c.groupID(s.RunAsGroup, p, "runAsGroup")
	for i, g := range s.SupplementalGroups {
		if g < 0 || g > maxID {
			c.messages(p.Child("supplementalGroups").Index(i), g, utilvalidation.IsValidGroupID(g))
		}
	}
	invalidIf(c, share, p, "shareProcessNamespace", true, "ShareProcessNamespace and HostPID cannot both be enabled")
	c.sysctls(spec, s.Sysctls, p)
	if s.FSGroupChangePolicy != nil {
		oneOf(c, p, "fsGroupChangePolicy", *s.FSGroupChangePolicy, groupPolicies)
	}
	c.seccomp(s.SeccompProfile, p)
	if s.WindowsOptions != nil {
		c.windowsOptions(s.WindowsOptions, p.Child("windowsOptions"))
	}
	c.appArmor(s.AppArmorProfile, p)
	if s.SupplementalGroupsPolicy != nil {
		oneOf(c, p, "supplementalGroupsPolicy", *s.SupplementalGroupsPolicy, supplementPolicy)
	}
	if s.SELinuxChangePolicy != nil {
		allowed := recursiveOnly
		if c.o.AllowMountOption {
			allowed = changePolicies
		}
		oneOf(c, p, "seLinuxChangePolicy", *s.SELinuxChangePolicy, allowed)
	}
}

const maxID = 1<<31 - 1

// userID checks the field runAsUser of a security context.
func (c *checker) userID(id *int64, p *field.Path) {
	if id != nil && (*id < 0 || *id > maxID) {
		c.messages(p.Child("runAsUser"), *id, utilvalidation.IsValidUserID(*id))
	}
}

func (c *checker) groupID(id *int64, p *field.Path, child string) {
	if id != nil && (*id < 0 || *id > maxID) {
		c.messages(p.Child(child), *id, utilvalidation.IsValidGroupID(*id))
	}
}

func (c *checker) sysctls(spec *corev1.PodSpec, list []corev1.Sysctl, p *field.Path) {
	var seen nameSet
	for i := range list {
		name, at := list[i].Name, p.Child("sysctls").Index(i).Child("name")
		switch {
		case name == "":
			c.required(at, "")
		case len(name) > maxSysctlName || !sysctlName.MatchString(name):
			c.invalid(at, name, fmt.Sprintf("must have at most %d characters and match regex %s", maxSysctlName, sysctlName))
		case seen.has(name):
			c.duplicate(at, name)
		}
		if !c.o.AllowNamespacedSysctlsOnHost {
			if host := hostSysctl(spec, name); host != "" {
				c.invalid(at, name, "may not be specified when '"+host+"' is true")
			}
		}
		seen.add(name)
	}
}

// hostSysctl names the field that makes a sysctl of this pod one of the node; "" if none does.
func hostSysctl(s *corev1.PodSpec, name string) string {
	name = dottedSysctl(name)
	switch {
	case s.HostNetwork && strings.HasPrefix(name, "net."):
		return "hostNetwork"
	case s.HostIPC && ipcSysctl(name):
		return "hostIPC"
	}
	return ""
}

// dottedSysctl turns the form with slashes into the one with dots. Dots in the
// former are slashes in the latter.
func dottedSysctl(name string) string {
	i := strings.IndexAny(name, "./")
	if i < 0 || name[i] == '.' {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
}

func ipcSysctl(name string) bool {
	return name == "kernel.sem" || strings.HasPrefix(name, "kernel.shm") ||
		strings.HasPrefix(name, "kernel.msg") || strings.HasPrefix(name, "fs.mqueue.")
}

func (c *checker) seccomp(s *corev1.SeccompProfile, p *field.Path) {
	if s == nil {
		return
	}
	p = p.Child("seccompProfile")
	if s.Type == "" {
		c.required(p.Child("type"), "type is required when seccompProfile is set")
	} else {
		oneOf(c, p, "type", s.Type, seccompTypes)
	}
	switch {
	case s.Type != corev1.SeccompProfileTypeLocalhost:
		if s.LocalhostProfile != nil {
			c.invalid(p.Child("localhostProfile"), rules.Shown(*s), "can only be set when seccomp type is Localhost")
		}
	case s.LocalhostProfile == nil:
		c.required(p.Child("localhostProfile"), "must be set when seccomp type is Localhost")
	default:
		c.descending(p, "localhostProfile", *s.LocalhostProfile)
	}
}

func (c *checker) appArmor(a *corev1.AppArmorProfile, p *field.Path) {
	if a == nil {
		return
	}
	p = p.Child("appArmorProfile")
	switch a.Type {
	case corev1.AppArmorProfileTypeLocalhost:
		c.appArmorLocalhost(a.LocalhostProfile, p.Child("localhostProfile"))
	case corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined:
		invalidIf(c, a.LocalhostProfile != nil, p, "localhostProfile", a.LocalhostProfile, "can only be set when AppArmor type is Localhost")
	case "":
		c.required(p.Child("type"), "type is required when appArmorProfile is set")
	default:
		c.add(field.NotSupported(p.Child("type"), a.Type, appArmorTypes))
	}
}

func (c *checker) appArmorLocalhost(profile *string, p *field.Path) {
	const mustBeSet = "must be set when AppArmor type is Localhost"
	if profile == nil {
		c.required(p, mustBeSet)
		return
	}
	if strings.TrimSpace(*profile) != *profile {
		c.invalid(p, *profile, "must not be padded with whitespace")
	} else if *profile == "" {
		c.required(p, mustBeSet)
	}
	if maxLength := 4095; len(*profile) > maxLength {
		c.add(field.TooLong(p, *profile, maxLength))
	}
}

// hostUsersAlone refuses host namespaces for a pod in a user namespace. The capitals in two of the paths are
// those of a stock server.
func (c *checker) hostUsersAlone(s *corev1.PodSpec, p *field.Path) {
	detail := "when `pod.Spec.HostUsers` is false"
	if s.HostUsers == nil || *s.HostUsers {
		return
	}
	if c.o.Since133 {
		detail = "when `hostUsers` is false"
	}
	c.forbiddenIf(s.HostNetwork && !c.o.AllowUsersOnHost, p, "hostNetwork", detail)
	c.forbiddenIf(s.HostPID, p, "HostPID", detail)
	c.forbiddenIf(s.HostIPC, p, "HostIPC", detail)
	if !c.o.Since133 || c.o.AllowBlocksOfUsers {
		return
	}
	visitContainers(s, func(ctr *corev1.Container, w where) {
		if len(ctr.VolumeDevices) > 0 {
			c.forbidden(w.path(p).Child("volumeDevices"), detail)
		}
	})
}

const longestHostname = 64

// hostnameOverride checks a pod's own host name, which is independent of DNS.
func (c *checker) hostnameOverride(s *corev1.PodSpec, p *field.Path) {
	if s.HostnameOverride == nil {
		return
	}
	c.forbiddenIf(s.SetHostnameAsFQDN != nil && *s.SetHostnameAsFQDN, p, "hostnameOverride", "may not be specified when setHostnameAsFQDN is true")
	c.forbiddenIf(s.HostNetwork, p, "hostnameOverride", "may not be specified when hostNetwork is true")
	if len(*s.HostnameOverride) > longestHostname {
		c.add(field.TooLong(p.Child("hostnameOverride"), "", longestHostname))
	}
	if !okSubdomain(*s.HostnameOverride) {
		c.dnsSubdomain(p, "hostnameOverride", *s.HostnameOverride)
	}
}

// schedulingGroup checks the name of the group that is scheduled together.
func (c *checker) schedulingGroup(g *corev1.PodSchedulingGroup, p *field.Path) {
	if g.PodGroupName == nil {
		c.invalid(p.Child("podGroupName"), g.PodGroupName, "must specify one of: `podGroupName`")
		return
	}
	c.objectName(p, "podGroupName", *g.PodGroupName)
}
