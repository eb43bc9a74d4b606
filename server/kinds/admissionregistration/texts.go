package admissionregistration

import (
	"iter"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
)

// validatingTexts are the expressions of a validating policy.
func validatingTexts(s *admissionv1.ValidatingAdmissionPolicySpec) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range s.Variables {
			if !yield(v.Expression) {
				return
			}
		}
		for _, c := range s.MatchConditions {
			if !yield(c.Expression) {
				return
			}
		}
		for _, v := range s.Validations {
			if !yield(v.Expression) || !yield(v.MessageExpression) {
				return
			}
		}
		for _, a := range s.AuditAnnotations {
			if !yield(a.ValueExpression) {
				return
			}
		}
	}
}

// mutatingTexts are the expressions of a mutating policy.
func mutatingTexts(s *admissionv1alpha1.MutatingAdmissionPolicySpec) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, v := range s.Variables {
			if !yield(v.Expression) {
				return
			}
		}
		for _, c := range s.MatchConditions {
			if !yield(c.Expression) {
				return
			}
		}
		for _, m := range s.Mutations {
			if m.ApplyConfiguration != nil && !yield(m.ApplyConfiguration.Expression) || m.JSONPatch != nil && !yield(m.JSONPatch.Expression) {
				return
			}
		}
	}
}

// hookTexts are the expressions of a configuration of webhooks.
func hookTexts(list []hook) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range list {
			for _, c := range list[i].conditions {
				if !yield(c.Expression) {
					return
				}
			}
		}
	}
}
