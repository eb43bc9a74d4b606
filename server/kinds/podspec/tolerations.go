package podspec

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	tolerationOps = []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt}
	taintEffects  = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
)

// ValidateTolerations checks tolerations of a pod or of a runtime class.
func ValidateTolerations(list []corev1.Toleration, p *field.Path, o Options) field.ErrorList {
	c := checker{o: o}
	c.tolerations(list, p)
	return c.errs
}

func (c *checker) tolerations(list []corev1.Toleration, p *field.Path) {
	for i := range list {
		t := &list[i]
		if t.Key != "" && !okQualifiedName(t.Key) {
			c.qualifiedName(p.Index(i), "key", t.Key)
		}
		if t.Key == "" && t.Operator != corev1.TolerationOpExists {
			c.invalid(p.Index(i).Child("operator"), t.Operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			c.invalid(p.Index(i).Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			if !okLabelValue(t.Value) {
				c.invalid(p.Index(i).Child("operator"), t.Value, strings.Join(utilvalidation.IsValidLabelValue(t.Value), ";"))
			}
		case corev1.TolerationOpExists:
			if t.Value != "" {
				c.invalid(p.Index(i).Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'")
			}
		default:
			c.comparison(t, p.Index(i))
		}
		if t.Effect != "" && !knownEffect(t.Effect) {
			c.add(field.NotSupported(p.Index(i).Child("effect"), t.Effect, taintEffects))
		}
	}
}

// comparison checks a toleration of taints whose values are numbers, smaller or greater ones.
func (c *checker) comparison(t *corev1.Toleration, p *field.Path) {
	switch {
	case !c.o.Since133 || t.Operator != corev1.TolerationOpLt && t.Operator != corev1.TolerationOpGt:
		c.add(field.NotSupported(p.Child("operator"), t.Operator, tolerationOps[:2]))
	case !c.o.AllowComparisons:
		c.add(field.NotSupported(p.Child("operator"), t.Operator, tolerationOps))
	default:
		c.messages(p.Child("value"), t.Value, content.IsDecimalInteger(t.Value))
		if _, err := strconv.ParseInt(t.Value, 10, 64); err != nil {
			c.invalid(p.Child("value"), t.Value, err.Error())
		}
	}
}

func knownEffect(e corev1.TaintEffect) bool {
	return e == corev1.TaintEffectNoSchedule || e == corev1.TaintEffectPreferNoSchedule || e == corev1.TaintEffectNoExecute
}
