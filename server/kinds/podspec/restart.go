package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxRestartRules   = 20
	maxExitCodes      = 255
	policyWithoutNone = "must specify restartPolicy when restart rules are used"
)

var (
	initRestart      = []corev1.ContainerRestartPolicy{corev1.ContainerRestartPolicyAlways}
	containerRestart = []corev1.ContainerRestartPolicy{corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure}
	exitCodeOps      = []corev1.ContainerRestartRuleOnExitCodesOperator{corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn}
	restartActions   = []corev1.ContainerRestartRuleAction{corev1.ContainerRestartRuleActionRestart, corev1.ContainerRestartRuleActionRestartAllContainers}
)

// initRestartPolicy checks when an init container starts again.
func (c *checker) initRestartPolicy(ctr *corev1.Container, p *field.Path) {
	rules := len(ctr.RestartPolicyRules)
	switch {
	case ctr.RestartPolicy == nil:
		c.requiredIf(rules > 0, p, "restartPolicy", policyWithoutNone)
	case !c.o.AllowRestartRules:
		oneOf(c, p, "restartPolicy", *ctr.RestartPolicy, initRestart)
	case Restartable(ctr) && !c.o.AllowRestartAll:
		c.forbiddenIf(rules > 0, p, "restartPolicyRules", "restartPolicyRules are not allowed for init containers with restart policy Always")
	default:
		c.restartRules(ctr, p)
	}
}

// restartRules checks the restart policy of a container and the exceptions from it.
func (c *checker) restartRules(ctr *corev1.Container, p *field.Path) {
	rules := ctr.RestartPolicyRules
	if ctr.RestartPolicy != nil {
		oneOf(c, p, "restartPolicy", *ctr.RestartPolicy, containerRestart)
	} else if len(rules) > 0 {
		c.required(p.Child("restartPolicy"), policyWithoutNone)
	}
	if len(rules) > maxRestartRules {
		c.add(field.TooMany(p.Child("restartPolicyRules"), len(rules), maxRestartRules))
	}
	actions := restartActions[:1]
	if c.o.AllowRestartAll {
		actions = restartActions
	}
	for i := range rules {
		at := p.Child("restartPolicyRules").Index(i)
		oneOf(c, at, "action", rules[i].Action, actions)
		codes := rules[i].ExitCodes
		if codes == nil {
			c.required(at.Child("exitCodes"), "must be specified")
			continue
		}
		oneOf(c, at.Child("exitCodes"), "operator", codes.Operator, exitCodeOps)
		if len(codes.Values) > maxExitCodes {
			c.add(field.TooMany(at.Child("exitCodes").Child("values"), len(codes.Values), maxExitCodes))
		}
	}
}
