package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (c *checker) affinity(a *corev1.Affinity, p *field.Path) {
	if n := a.NodeAffinity; n != nil {
		c.nodeAffinity(n, p.Child("nodeAffinity"))
	}
	if a.PodAffinity != nil {
		c.podAffinity(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, p.Child("podAffinity"))
	}
	if a.PodAntiAffinity != nil {
		c.podAffinity(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
			a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, p.Child("podAntiAffinity"))
	}
}

func (c *checker) nodeAffinity(n *corev1.NodeAffinity, p *field.Path) {
	if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		c.labelValues = c.o.Since133 && !c.o.AllowInvalidNodeValues
		c.nodeSelector(n.RequiredDuringSchedulingIgnoredDuringExecution, p.Child(requiredTerms))
		c.labelValues = false
	}
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		t, at := &n.PreferredDuringSchedulingIgnoredDuringExecution[i], p.Child(preferredTerms).Index(i)
		c.weight(t.Weight, at)
		c.nodeSelectorTerm(&t.Preference, at.Child("preference"))
	}
}

func (c *checker) weight(w int32, p *field.Path) {
	invalidIf(c, w <= 0 || w > 100, p, "weight", w, "must be in the range 1-100")
}

func (c *checker) nodeSelector(s *corev1.NodeSelector, p *field.Path) {
	p = p.Child("nodeSelectorTerms")
	c.requiredIf(len(s.NodeSelectorTerms) == 0, p, "", "must have at least one node selector term")
	for i := range s.NodeSelectorTerms {
		c.nodeSelectorTerm(&s.NodeSelectorTerms[i], p.Index(i))
	}
}

// ValidateNodeSelector checks a node selector outside of pods and volumes, where values may be invalid as
// labels.
func ValidateNodeSelector(s *corev1.NodeSelector, p *field.Path) field.ErrorList {
	c := checker{labelValues: true}
	c.nodeSelector(s, p)
	return c.errs
}

func (c *checker) nodeSelectorTerm(t *corev1.NodeSelectorTerm, p *field.Path) {
	for i := range t.MatchExpressions {
		c.nodeRequirement(&t.MatchExpressions[i], p.Child("matchExpressions").Index(i))
	}
	for i := range t.MatchFields {
		c.nodeFieldRequirement(&t.MatchFields[i], p.Child("matchFields").Index(i))
	}
}

func (c *checker) nodeRequirement(r *corev1.NodeSelectorRequirement, p *field.Path) {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		c.requiredIf(len(r.Values) == 0, p, "values", "must be specified when `operator` is 'In' or 'NotIn'")
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		c.forbiddenIf(len(r.Values) > 0, p, "values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		c.requiredIf(len(r.Values) != 1, p, "values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
	default:
		c.invalid(p.Child("operator"), r.Operator, "not a valid selector operator")
	}
	c.qualifiedName(p, "key", r.Key)
	if c.labelValues {
		for i, value := range r.Values {
			c.messages(p.Child("values").Index(i), value, utilvalidation.IsValidLabelValue(value))
		}
	}
}

func (c *checker) nodeFieldRequirement(r *corev1.NodeSelectorRequirement, p *field.Path) {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		c.requiredIf(len(r.Values) != 1, p, "values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
	default:
		c.invalid(p.Child("operator"), r.Operator, "not a valid selector operator")
	}
	if r.Key != "metadata.name" {
		c.invalid(p.Child("key"), r.Key, "not a valid field selector key")
		return
	}
	for i, v := range r.Values {
		if !okSubdomain(v) {
			c.objectName(p.Child("values").Index(i), "", v)
		}
	}
}

func (c *checker) podAffinity(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, p *field.Path) {
	for i := range required {
		c.affinityTerm(&required[i], p.Child(requiredTerms).Index(i))
	}
	for i := range preferred {
		at := p.Child(preferredTerms).Index(i)
		c.weight(preferred[i].Weight, at)
		c.affinityTerm(&preferred[i].PodAffinityTerm, at.Child("podAffinityTerm"))
	}
}

func (c *checker) affinityTermSelectors(t *corev1.PodAffinityTerm, p *field.Path) {
	c.selector(t.LabelSelector, c.o.AllowInvalidLabelValueInSelector, p, "labelSelector")
	c.selector(t.NamespaceSelector, c.o.AllowInvalidLabelValueInSelector, p, "namespaceSelector")
}

func (c *checker) affinityTerm(t *corev1.PodAffinityTerm, p *field.Path) {
	c.affinityTermSelectors(t, p)
	for _, ns := range t.Namespaces {
		if !okLabel(ns) {
			c.messages(p.Child("namespace"), ns, validation.ValidateNamespaceName(ns, false))
		}
	}
	c.labelKeys(t, p)
	c.requiredIf(t.TopologyKey == "", p, "topologyKey", "can not be empty")
	c.qualifiedName(p, "topologyKey", t.TopologyKey)
}

// labelKeys checks the keys whose values are taken from the pod itself. When a
// Pod is checked, its selector holds them already: a key that it holds twice was
// named in both places.
func (c *checker) labelKeys(t *corev1.PodAffinityTerm, p *field.Path) {
	c.labelKeyList(t.MatchLabelKeys, t, p, "matchLabelKeys")
	c.labelKeyList(t.MismatchLabelKeys, t, p, "mismatchLabelKeys")
	if t.LabelSelector != nil && len(t.MatchLabelKeys) > 0 {
		last := make(map[string]int, len(t.MatchLabelKeys))
		for i, k := range t.MatchLabelKeys {
			last[k] = i
		}
		inSelector := make(map[string]bool)
		for k := range t.LabelSelector.MatchLabels {
			inSelector[k] = true
		}
		for i := range t.LabelSelector.MatchExpressions {
			key := t.LabelSelector.MatchExpressions[i].Key
			if at, ok := last[key]; ok && inSelector[key] {
				c.invalid(p.Index(at), key, "exists in both matchLabelKeys and labelSelector")
			}
			inSelector[key] = true
		}
	}
	mismatch := rules.In(t.MismatchLabelKeys)
	for i, k := range t.MatchLabelKeys {
		if mismatch.Has(k) {
			c.invalid(p.Child("matchLabelKeys").Index(i), k, "exists in both matchLabelKeys and mismatchLabelKeys")
		}
	}
}

func (c *checker) labelKeyList(keys []string, t *corev1.PodAffinityTerm, p *field.Path, child string) {
	if len(keys) == 0 {
		return
	}
	if t.LabelSelector == nil {
		c.forbidden(p.Child(child), "must not be specified when labelSelector is not set")
		return
	}
	for i, k := range keys {
		if !okQualifiedName(k) {
			c.qualifiedName(p.Child(child).Index(i), "", k)
		}
	}
}
