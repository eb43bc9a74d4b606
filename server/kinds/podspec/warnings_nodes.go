package podspec

import (
	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// deprecatedLabels are deprecated labels of nodes, with their replacements.
var deprecatedLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  "deprecated since v1.9",
	"scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// DeprecatedNodeLabel names the replacement of a deprecated node label, or is "".
func DeprecatedNodeLabel(key string) string { return deprecatedLabels[key] }

func (a *adviser) nodeLabels(s *corev1.PodSpec) {
	for _, k := range sortedKeys(s.NodeSelector) {
		if msg := deprecatedLabels[k]; msg != "" {
			a.warn(a.spec.Child("nodeSelector").Key(k), msg)
		}
	}
	if s.Affinity == nil || s.Affinity.NodeAffinity == nil {
		return
	}
	n, p := s.Affinity.NodeAffinity, a.spec.Child("affinity", "nodeAffinity")
	if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		for i := range r.NodeSelectorTerms {
			a.nodeTerm(&r.NodeSelectorTerms[i], p.Child(requiredTerms, "nodeSelectorTerms").Index(i), false)
		}
	}
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		a.nodeTerm(&n.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference, p.Child(preferredTerms).Index(i).Child("preference"), a.since133)
	}
}

// nodeTerm warns of deprecated labels and, with values, of values that no label can have.
func (a *adviser) nodeTerm(t *corev1.NodeSelectorTerm, p *field.Path, values bool) {
	for i := range t.MatchExpressions {
		r := &t.MatchExpressions[i]
		if msg := deprecatedLabels[r.Key]; msg != "" {
			a.warnf(p.Child("matchExpressions").Index(i).Child("key"), "%s is %s", r.Key, msg)
		}
		for j, v := range r.Values {
			if !values || okLabelValue(v) {
				continue
			}
			for _, msg := range utilvalidation.IsValidLabelValue(v) {
				a.warnf(p.Child("matchExpressions").Index(i).Child("values").Index(j), "%s is invalid, %s", v, msg)
			}
		}
	}
}

func (a *adviser) spread(s *corev1.PodSpec) {
	for i := range s.TopologySpreadConstraints {
		t := &s.TopologySpreadConstraints[i]
		if t.LabelSelector != nil && deprecatedLabels[t.TopologyKey] == "" {
			continue
		}
		p := a.spec.Child("topologySpreadConstraints").Index(i)
		if msg := deprecatedLabels[t.TopologyKey]; msg != "" {
			a.warnf(p.Child("topologyKey"), "%s is %s", t.TopologyKey, msg)
		}
		if t.LabelSelector == nil {
			a.warn(p.Child("labelSelector"), nullSelector)
		}
	}
}

func (a *adviser) affinity(s *corev1.PodSpec) {
	if s.Affinity == nil {
		return
	}
	terms := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, p *field.Path) {
		for i := range required {
			if required[i].LabelSelector == nil {
				a.warn(p.Child(requiredTerms).Index(i).Child("labelSelector"), nullSelector)
			}
		}
		for i := range preferred {
			if preferred[i].PodAffinityTerm.LabelSelector == nil {
				a.warn(p.Child(preferredTerms).Index(i).Child("podAffinityTerm", "labelSelector"), nullSelector)
			}
		}
	}
	if f := s.Affinity.PodAffinity; f != nil {
		terms(f.RequiredDuringSchedulingIgnoredDuringExecution, f.PreferredDuringSchedulingIgnoredDuringExecution, a.spec.Child("affinity", "podAffinity"))
	}
	if f := s.Affinity.PodAntiAffinity; f != nil {
		terms(f.RequiredDuringSchedulingIgnoredDuringExecution, f.PreferredDuringSchedulingIgnoredDuringExecution, a.spec.Child("affinity", "podAntiAffinity"))
	}
}
