package podspec

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxCredentialSpecKiB = 64
	maxUserDomain        = 256
	maxUserName          = 104
)

var (
	controlChars   = regexp.MustCompile(`[[:cntrl:]]+`)
	netBIOSName    = regexp.MustCompile(`^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$`)
	windowsDomain  = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$`)
	badUserChars   = regexp.MustCompile(`["/\\:;|=,\+\*\?<>@\[\]]`)
	dotsAndSpaces  = regexp.MustCompile(`^[\. ]+$`)
	operatingNames = []corev1.OSName{corev1.Linux, corev1.Windows}
)

func (c *checker) windowsOptions(w *corev1.WindowsSecurityContextOptions, p *field.Path) {
	if n := w.GMSACredentialSpecName; n != nil && !okSubdomain(*n) {
		c.messages(p.Child("gmsaCredentialSpecName"), n, utilvalidation.IsDNS1123Subdomain(*n))
	}
	if s := w.GMSACredentialSpec; s != nil {
		if *s == "" {
			c.invalid(p.Child("gmsaCredentialSpec"), s, "gmsaCredentialSpec cannot be an empty string")
		} else if len(*s) > maxCredentialSpecKiB*1024 {
			c.invalid(p.Child("gmsaCredentialSpec"), s, fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", maxCredentialSpecKiB))
		}
	}
	if w.RunAsUserName != nil {
		for _, m := range windowsUserProblems(*w.RunAsUserName) {
			c.invalid(p.Child("runAsUserName"), w.RunAsUserName, m)
		}
	}
}

// windowsUserProblems checks USER or DOMAIN\USER.
func windowsUserProblems(name string) []string {
	if name == "" {
		return []string{"runAsUserName cannot be an empty string"}
	}
	if controlChars.MatchString(name) {
		return []string{"runAsUserName cannot contain control characters"}
	}
	domain, user, hasDomain := strings.Cut(name, `\`)
	if !hasDomain {
		domain, user = "", name
	}
	if strings.Contains(user, `\`) {
		return []string{"runAsUserName cannot contain more than one backslash"}
	}
	var msgs []string
	if len(domain) >= maxUserDomain {
		msgs = append(msgs, fmt.Sprintf("runAsUserName's Domain length must be under %d characters", maxUserDomain))
	}
	if hasDomain && !netBIOSName.MatchString(domain) && !windowsDomain.MatchString(domain) {
		msgs = append(msgs, "runAsUserName's Domain doesn't match the NetBios nor the DNS format")
	}
	if user == "" {
		msgs = append(msgs, "runAsUserName's User cannot be empty")
	} else if len(user) > maxUserName {
		msgs = append(msgs, fmt.Sprintf("runAsUserName's User length must not be longer than %d characters", maxUserName))
	}
	if dotsAndSpaces.MatchString(user) {
		msgs = append(msgs, "runAsUserName's User cannot contain only periods or spaces")
	}
	if badUserChars.MatchString(user) {
		msgs = append(msgs, `runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]`)
	}
	return msgs
}

// hostProcess holds containers that run as processes of a Windows node together:
// either all of a pod are, or none.
func (c *checker) hostProcess(s *corev1.PodSpec, p *field.Path) {
	var pod *bool
	if s.SecurityContext != nil && s.SecurityContext.WindowsOptions != nil {
		pod = s.SecurityContext.WindowsOptions.HostProcess
	}
	all, host := 0, 0
	visitContainers(s, func(ctr *corev1.Container, w where) {
		all++
		own := pod
		if ctr.SecurityContext != nil && ctr.SecurityContext.WindowsOptions != nil && ctr.SecurityContext.WindowsOptions.HostProcess != nil {
			own = ctr.SecurityContext.WindowsOptions.HostProcess
			if pod != nil && *pod != *own {
				c.invalid(w.path(p).Child("securityContext", "windowsOptions", "hostProcess"), *own,
					fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *pod))
			}
		}
		if own != nil && *own {
			host++
		}
	})
	if host == 0 {
		return
	}
	invalidIf(c, host != all, p, "", "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	invalidIf(c, !s.HostNetwork, p, "hostNetwork", s.HostNetwork, "hostNetwork must be true if pod contains any hostProcess containers")
	if c.o.NoPrivileged { // on Windows they may do what privileged ones may elsewhere
		c.forbidden(p, "hostProcess containers are disallowed by cluster policy")
	}
}

// os holds a pod for one operating system to the fields that this one has.
func (c *checker) os(s *corev1.PodSpec, p *field.Path) {
	switch s.OS.Name {
	case "":
		detail := "cannot be empty"
		if c.o.Since133 {
			detail = ""
		}
		c.required(p.Child("os").Child("name"), detail)
	case corev1.Linux:
		c.linuxOnly(s, p)
	case corev1.Windows:
		c.windowsOnly(s, p)
	default:
		c.add(field.NotSupported(p.Child("os"), s.OS.Name, operatingNames))
	}
}

func (c *checker) linuxOnly(s *corev1.PodSpec, p *field.Path) {
	const detail = "windows options cannot be set for a linux pod"
	if s.SecurityContext != nil && s.SecurityContext.WindowsOptions != nil {
		c.forbidden(p.Child("securityContext").Child("windowsOptions"), detail)
	}
	visitContainers(s, func(ctr *corev1.Container, w where) {
		if ctr.SecurityContext != nil && ctr.SecurityContext.WindowsOptions != nil {
			c.forbidden(w.path(p).Child("securityContext").Child("windowsOptions"), detail)
		}
	})
}

// setField is a field and whether it is set.
type setField struct {
	set  bool
	name string
}

func (c *checker) forbidSet(p *field.Path, detail string, fields []setField) {
	for _, f := range fields {
		c.forbiddenIf(f.set, p, f.name, detail)
	}
}

func (c *checker) windowsOnly(s *corev1.PodSpec, p *field.Path) {
	const detail = "cannot be set for a windows pod"
	if sc := s.SecurityContext; sc != nil {
		inner := p.Child("securityContext")
		c.forbidSet(inner, detail, []setField{{sc.AppArmorProfile != nil, "appArmorProfile"}, {sc.SELinuxOptions != nil, "seLinuxOptions"}})
		c.forbidSet(p, detail, []setField{{s.HostUsers != nil, "hostUsers"}, {s.HostPID, "hostPID"}, {s.HostIPC, "hostIPC"}})
		c.forbidSet(inner, detail, []setField{
			{sc.SeccompProfile != nil, "seccompProfile"}, {sc.FSGroup != nil, "fsGroup"},
			{sc.FSGroupChangePolicy != nil, "fsGroupChangePolicy"}, {len(sc.Sysctls) > 0, "sysctls"},
		})
		c.forbidSet(p, detail, []setField{{s.ShareProcessNamespace != nil, "shareProcessNamespace"}})
		c.forbidSet(inner, detail, []setField{
			{sc.RunAsUser != nil, "runAsUser"}, {sc.RunAsGroup != nil, "runAsGroup"},
			{sc.SupplementalGroups != nil, "supplementalGroups"}, {sc.SupplementalGroupsPolicy != nil, "supplementalGroupsPolicy"},
			{sc.SELinuxChangePolicy != nil, "seLinuxChangePolicy"},
		})
	}
	visitContainers(s, func(ctr *corev1.Container, w where) {
		sc := ctr.SecurityContext
		if sc == nil {
			return
		}
		c.forbidSet(w.path(p).Child("securityContext"), detail, []setField{
			{sc.AppArmorProfile != nil, "appArmorProfile"}, {sc.SELinuxOptions != nil, "seLinuxOptions"},
			{sc.SeccompProfile != nil, "seccompProfile"}, {sc.Capabilities != nil, "capabilities"},
			{sc.ReadOnlyRootFilesystem != nil, "readOnlyRootFilesystem"}, {sc.Privileged != nil, "privileged"},
			{sc.AllowPrivilegeEscalation != nil, "allowPrivilegeEscalation"}, {sc.ProcMount != nil, "procMount"},
			{sc.RunAsUser != nil, "runAsUser"}, {sc.RunAsGroup != nil, "runAsGroup"},
		})
	})
}
