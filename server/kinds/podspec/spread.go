package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	unsatisfiable     = []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}
	inclusionPolicies = []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
)

const notPositive = "must be greater than zero"

// spread checks the constraints that spread pods over a topology.
func (c *checker) spread(list []corev1.TopologySpreadConstraint, p *field.Path) {
	type pair struct {
		key string
		do  corev1.UnsatisfiableConstraintAction
	}
	of := func(s *corev1.TopologySpreadConstraint) pair { return pair{s.TopologyKey, s.WhenUnsatisfiable} }
	var last map[pair]int
	if len(list) > 1 {
		last = make(map[pair]int, len(list))
		for i := range list {
			last[of(&list[i])] = i
		}
	}
	for i := range list {
		s, at := &list[i], p.Index(i)
		invalidIf(c, s.MaxSkew <= 0, at, "maxSkew", s.MaxSkew, notPositive)
		c.requiredIf(s.TopologyKey == "", at, "topologyKey", "can not be empty")
		oneOf(c, at, "whenUnsatisfiable", s.WhenUnsatisfiable, unsatisfiable)
		if last[of(s)] > i {
			c.duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%v, %v}", s.TopologyKey, s.WhenUnsatisfiable))
		}
		if s.MinDomains != nil {
			c.minDomains(s, at.Child("minDomains"))
		}
		if s.NodeAffinityPolicy != nil {
			oneOf(c, at, "nodeAffinityPolicy", *s.NodeAffinityPolicy, inclusionPolicies)
		}
		if s.NodeTaintsPolicy != nil {
			oneOf(c, at, "nodeTaintsPolicy", *s.NodeTaintsPolicy, inclusionPolicies)
		}
		if len(s.MatchLabelKeys) > 0 {
			c.spreadLabelKeys(s, at)
		}
		if !c.o.AllowInvalidSpreadSelector {
			c.selector(s.LabelSelector, false, at, "labelSelector")
		}
	}
}

func (c *checker) minDomains(s *corev1.TopologySpreadConstraint, p *field.Path) {
	invalidIf(c, *s.MinDomains <= 0, p, "", s.MinDomains, notPositive)
	if s.WhenUnsatisfiable != corev1.DoNotSchedule {
		c.invalid(p, s.MinDomains, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s", corev1.DoNotSchedule, s.WhenUnsatisfiable))
	}
}

// spreadLabelKeys checks the keys whose values are taken from the pod itself.
func (c *checker) spreadLabelKeys(s *corev1.TopologySpreadConstraint, p *field.Path) {
	if c.o.MergedSpreadKeys {
		c.labelKeys(&corev1.PodAffinityTerm{LabelSelector: s.LabelSelector, MatchLabelKeys: s.MatchLabelKeys}, p)
		return
	}
	p = p.Child("matchLabelKeys")
	inSelector := make(map[string]bool)
	if s.LabelSelector == nil {
		c.forbidden(p, "must not be specified when labelSelector is not set")
	} else {
		for k := range s.LabelSelector.MatchLabels {
			inSelector[k] = true
		}
		for i := range s.LabelSelector.MatchExpressions {
			inSelector[s.LabelSelector.MatchExpressions[i].Key] = true
		}
	}
	for i, k := range s.MatchLabelKeys {
		c.qualifiedName(p.Index(i), "", k)
		if inSelector[k] {
			c.invalid(p.Index(i), k, "exists in both matchLabelKeys and labelSelector")
		}
	}
}
