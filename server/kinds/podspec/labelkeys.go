package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MergeLabelKeys writes the values that a pod has for matchLabelKeys and
// mismatchLabelKeys of its affinity into the selectors, and those for matchLabelKeys of the constraints
// that spread it. It is done once, when the pod is created.
func (r Rules) MergeLabelKeys(s *corev1.PodSpec, labels map[string]string) {
	if r.mergeSpreadKeys {
		for i := range s.TopologySpreadConstraints {
			if t := &s.TopologySpreadConstraints[i]; t.LabelSelector != nil {
				mergeKeys(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
			}
		}
	}
	visitPodAffinityTerms(s, func(t *corev1.PodAffinityTerm) {
		if t.LabelSelector == nil {
			return
		}
		mergeKeys(t.LabelSelector, t.MatchLabelKeys, metav1.LabelSelectorOpIn, labels)
		mergeKeys(t.LabelSelector, t.MismatchLabelKeys, metav1.LabelSelectorOpNotIn, labels)
	})
}

func mergeKeys(s *metav1.LabelSelector, keys []string, op metav1.LabelSelectorOperator, labels map[string]string) {
	for _, k := range keys {
		if v, ok := labels[k]; ok {
			s.MatchExpressions = append(s.MatchExpressions, metav1.LabelSelectorRequirement{Key: k, Operator: op, Values: []string{v}})
		}
	}
}
