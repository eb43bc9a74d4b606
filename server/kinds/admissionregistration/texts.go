package admissionregistration

import (
	"iter"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// validatingTexts returns the expressions of a validating policy.
func validatingTexts(s *admissionv1.ValidatingAdmissionPolicySpec) iter.Seq[string] {
	return together(
		of(s.Variables, func(v *admissionv1.Variable) string { return v.Expression }),
		of(s.MatchConditions, func(c *admissionv1.MatchCondition) string { return c.Expression }),
		of(s.Validations, func(v *admissionv1.Validation) string { return v.Expression }),
		of(s.Validations, func(v *admissionv1.Validation) string { return v.MessageExpression }),
		of(s.AuditAnnotations, func(a *admissionv1.AuditAnnotation) string { return a.ValueExpression }),
	)
}

// mutatingTexts returns the expressions of a mutating policy.
func mutatingTexts(s *admissionv1.MutatingAdmissionPolicySpec) iter.Seq[string] {
	return together(
		of(s.Variables, func(v *admissionv1.Variable) string { return v.Expression }),
		of(s.MatchConditions, func(c *admissionv1.MatchCondition) string { return c.Expression }),
		of(s.Mutations, func(m *admissionv1.Mutation) string {
			return rules.Value(m.ApplyConfiguration).Expression
		}),
		of(s.Mutations, func(m *admissionv1.Mutation) string {
			return rules.Value(m.JSONPatch).Expression
		}),
	)
}

// of returns the text of each element of a list.
func of[T any](list []T, text func(*T) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range list {
			if !yield(text(&list[i])) {
				return
			}
		}
	}
}

// together returns one sequence after the other.
func together(all ...iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, seq := range all {
			for text := range seq {
				if !yield(text) {
					return
				}
			}
		}
	}
}

// hookTexts returns the expressions of a configuration of webhooks.
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
