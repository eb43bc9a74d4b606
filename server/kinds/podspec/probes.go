package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var uriSchemes = []corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}

// lifecycleAndProbes checks hooks and probes of a container that stays.
func (c *checker) lifecycleAndProbes(ctr *corev1.Container, s *podScope, p *field.Path) {
	if l := ctr.Lifecycle; l != nil {
		if l.PostStart != nil {
			c.handler(lifecycleAction(l.PostStart), s.gracePeriod, p.Child("lifecycle").Child("postStart"))
		}
		if l.PreStop != nil {
			c.handler(lifecycleAction(l.PreStop), s.gracePeriod, p.Child("lifecycle").Child("preStop"))
		}
		if l.StopSignal != nil {
			c.stopSignal(*l.StopSignal, s.spec.OS, p.Child("lifecycle").Child("stopSignal"))
		}
	}
	if ctr.LivenessProbe != nil {
		c.probe(ctr.LivenessProbe, s, p.Child("livenessProbe"))
		c.singleSuccess(ctr.LivenessProbe, p, "livenessProbe")
	}
	if r := ctr.ReadinessProbe; r != nil {
		c.probe(r, s, p.Child("readinessProbe"))
		if r.TerminationGracePeriodSeconds != nil {
			c.invalid(p.Child("readinessProbe").Child("terminationGracePeriodSeconds"), r.TerminationGracePeriodSeconds, "must not be set for readinessProbes")
		}
	}
	if ctr.StartupProbe != nil {
		c.probe(ctr.StartupProbe, s, p.Child("startupProbe"))
		c.singleSuccess(ctr.StartupProbe, p, "startupProbe")
	}
}

func (c *checker) singleSuccess(pr *corev1.Probe, p *field.Path, child string) {
	if pr.SuccessThreshold != 1 {
		c.invalid(p.Child(child).Child("successThreshold"), pr.SuccessThreshold, "must be 1")
	}
}

func (c *checker) probe(pr *corev1.Probe, s *podScope, p *field.Path) {
	c.handler(action{pr.Exec, pr.HTTPGet, pr.TCPSocket, pr.GRPC, nil}, s.gracePeriod, p)
	c.nonNegative(p, "initialDelaySeconds", pr.InitialDelaySeconds)
	c.nonNegative(p, "timeoutSeconds", pr.TimeoutSeconds)
	c.nonNegative(p, "periodSeconds", pr.PeriodSeconds)
	c.nonNegative(p, "successThreshold", pr.SuccessThreshold)
	c.nonNegative(p, "failureThreshold", pr.FailureThreshold)
	if g := pr.TerminationGracePeriodSeconds; g != nil && *g <= 0 {
		c.invalid(p.Child("terminationGracePeriodSeconds"), *g, "must be greater than 0")
	}
}

func (c *checker) nonNegative(p *field.Path, child string, n int32) {
	if n < 0 {
		c.invalid(p.Child(child), int64(n), validation.IsNegativeErrorMsg)
	}
}

// action is the action of a probe or a hook: exactly one of its fields is set.
type action struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func lifecycleAction(h *corev1.LifecycleHandler) action {
	return action{h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep}
}

func (c *checker) handler(a action, grace *int64, p *field.Path) {
	n := 0
	// first reports whether this is the only action so far.
	first := func(name string) bool {
		n++
		c.forbiddenIf(n > 1, p, name, "may not specify more than 1 handler type")
		return n == 1
	}
	if a.exec != nil && first("exec") && len(a.exec.Command) == 0 {
		c.required(p.Child("exec").Child("command"), "")
	}
	if a.http != nil && first("httpGet") {
		c.httpGet(a.http, p.Child("httpGet"))
	}
	if a.tcp != nil && first("tcpSocket") {
		c.portRef(a.tcp.Port, p.Child("tcpSocket"))
	}
	if a.grpc != nil && first("grpc") {
		c.portRef(intstr.FromInt32(a.grpc.Port), p.Child("grpc"))
	}
	if a.sleep != nil && first("sleep") {
		c.sleep(a.sleep, grace, p)
	}
	c.requiredIf(n == 0, p, "", "must specify a handler type")
}

func (c *checker) httpGet(a *corev1.HTTPGetAction, p *field.Path) {
	c.requiredIf(a.Path == "", p, "path", "")
	c.portRef(a.Port, p)
	oneOf(c, p, "scheme", a.Scheme, uriSchemes)
	for i := range a.HTTPHeaders {
		if msgs := utilvalidation.IsHTTPHeaderName(a.HTTPHeaders[i].Name); len(msgs) > 0 {
			c.messages(p.Child("httpHeaders"), a.HTTPHeaders[i].Name, msgs)
		}
	}
}

// sleep compares with the grace period, unless that is itself wrong.
func (c *checker) sleep(a *corev1.SleepAction, grace *int64, p *field.Path) {
	if grace == nil {
		return
	}
	if c.o.AllowZeroSleep {
		if a.Seconds < 0 || a.Seconds > *grace {
			c.invalid(p.Child("sleep"), a.Seconds, fmt.Sprintf("must be non-negative and less than terminationGracePeriodSeconds (%d)", *grace))
		}
		return
	}
	if a.Seconds <= 0 || a.Seconds > *grace {
		c.invalid(p.Child("sleep"), a.Seconds, fmt.Sprintf("must be greater than 0 and less than terminationGracePeriodSeconds (%d). "+
			"Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.", *grace))
	}
}
