package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// renamedLabels are labels of nodes that have a newer name.
var renamedLabels = map[string]string{
	corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
	corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	"beta.kubernetes.io/os":             corev1.LabelOSStable,
	"beta.kubernetes.io/arch":           corev1.LabelArchStable,
	corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
}

// sameAffinity compares affinities, where a label may move to its newer name.
func sameAffinity(a, old *corev1.VolumeNodeAffinity) bool {
	if a == nil || a.Required == nil || old.Required == nil {
		return rules.Same(a, old)
	}
	adapted := old.DeepCopy()
	for i := range adapted.Required.NodeSelectorTerms {
		if i >= len(a.Required.NodeSelectorTerms) {
			break
		}
		adopt(adapted.Required.NodeSelectorTerms[i].MatchExpressions, a.Required.NodeSelectorTerms[i].MatchExpressions)
		adopt(adapted.Required.NodeSelectorTerms[i].MatchFields, a.Required.NodeSelectorTerms[i].MatchFields)
	}
	return rules.Same(a, adapted)
}

func adopt(old, now []corev1.NodeSelectorRequirement) {
	for i := range old {
		if i < len(now) && old[i].Key != now[i].Key && renamedLabels[old[i].Key] == now[i].Key {
			old[i].Key = now[i].Key
		}
	}
}

// affinityWarnings warns of labels under their older name.
func affinityWarnings(s *corev1.NodeSelector, path *field.Path) []string {
	var warnings []string
	for i, term := range s.NodeSelectorTerms {
		for j, r := range term.MatchExpressions {
			if msg := podspec.DeprecatedNodeLabel(r.Key); msg != "" {
				warnings = append(warnings, fmt.Sprintf("%s: %s is %s",
					path.Child("nodeSelectorTerms").Index(i).Child("matchExpressions").Index(j).Child("key"), r.Key, msg))
			}
		}
	}
	return warnings
}
