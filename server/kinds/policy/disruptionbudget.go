// Package policy holds the strategy of PodDisruptionBudgets.
package policy

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// PodDisruptionBudget has the rules for PodDisruptionBudgets.
var PodDisruptionBudget = kinds.Typed[*policyv1.PodDisruptionBudget]{
	ValidateName: path.ValidatePathSegmentName,
	Meta:         &kinds.MetaRules{AnyFinalizer: true, ValidateLast: true},
	Counted:      func(b *policyv1.PodDisruptionBudget) []any { return []any{b.Spec} },
	Validate: func(obj *policyv1.PodDisruptionBudget) field.ErrorList {
		return validateBudget(&obj.Spec, false)
	},
	ValidateUpdate: func(b, old *policyv1.PodDisruptionBudget) field.ErrorList {
		return validateBudget(&b.Spec, rules.SelectorInvalid(old.Spec.Selector))
	},
	Status: &kinds.Status[*policyv1.PodDisruptionBudget]{Meta: &kinds.MetaRules{AnyFinalizer: true}, Validate: validateBudgetStatus},
}.Strategy()

// PodDisruptionBudgetColumns is their Table form.
var PodDisruptionBudgetColumns = columns.Of(
	func(b *policyv1.PodDisruptionBudget, now time.Time) []any {
		return []any{
			b.Name, bound(b.Spec.MinAvailable), bound(b.Spec.MaxUnavailable),
			int64(b.Status.DisruptionsAllowed), columns.Since(b.CreationTimestamp, now),
		}
	},
	columns.Name(),
	columns.Text("Min Available", "The minimum number of pods that must be available."),
	columns.Text("Max Unavailable", "The maximum number of pods that may be unavailable."),
	columns.Number("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
	columns.Age(),
)

func bound(v *intstr.IntOrString) string {
	if v == nil {
		return "N/A"
	}
	return v.String()
}

func validateBudget(s *policyv1.PodDisruptionBudgetSpec, keepInvalid bool) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if s.MinAvailable != nil && s.MaxUnavailable != nil {
		errs = append(errs, field.Invalid(p, rules.Shown(s), "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateBound(s.MinAvailable, p.Child("minAvailable"))...)
	errs = append(errs, validateBound(s.MaxUnavailable, p.Child("maxUnavailable"))...)
	errs = append(errs, rules.LooseSelector(s.Selector, keepInvalid, p.Child("selector"))...)
	if u := s.UnhealthyPodEvictionPolicy; u != nil {
		errs = append(errs, rules.OneOf(*u, p.Child("unhealthyPodEvictionPolicy"), policyv1.AlwaysAllow, policyv1.IfHealthyBudget)...)
	}
	return errs
}

func validateBound(v *intstr.IntOrString, p *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	return append(rules.IntOrPercent(*v, p), rules.AtMostAll(*v, p)...)
}

func validateBudgetStatus(obj, _ *policyv1.PodDisruptionBudget) field.ErrorList {
	s, p := &obj.Status, field.NewPath("status")
	errs := rules.Conditions(s.Conditions, p.Child("conditions"))
	errs = append(errs, rules.NotNegative(s.DisruptionsAllowed, p.Child("disruptionsAllowed"))...)
	errs = append(errs, rules.NotNegative(s.CurrentHealthy, p.Child("currentHealthy"))...)
	errs = append(errs, rules.NotNegative(s.DesiredHealthy, p.Child("desiredHealthy"))...)
	return append(errs, rules.NotNegative(s.ExpectedPods, p.Child("expectedPods"))...)
}
