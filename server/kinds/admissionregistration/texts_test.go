package admissionregistration

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// TestLongTexts: expressions that take too long to compile are refused, wherever they are, unless
// the old object had such.
func TestLongTexts(t *testing.T) {
	long := "'" + strings.Repeat("x", expr.MaxTexts) + "' == ''"
	refused := func(errs field.ErrorList) bool {
		return len(errs) == 1 && errs[0].Type == field.ErrorTypeForbidden && errs[0].Detail == expr.LongDetail()
	}
	validating := func(change func(s *admissionv1.ValidatingAdmissionPolicySpec)) *admissionv1.ValidatingAdmissionPolicy {
		p := &admissionv1.ValidatingAdmissionPolicy{}
		change(&p.Spec)
		return p
	}
	for name, p := range map[string]*admissionv1.ValidatingAdmissionPolicy{
		"variable": validating(func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Variables = []admissionv1.Variable{{Expression: long}}
		}),
		"condition": validating(func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.MatchConditions = []admissionv1.MatchCondition{{Expression: long}}
		}),
		"validation": validating(func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Validations = []admissionv1.Validation{{Expression: long}}
		}),
		"message": validating(func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Validations = []admissionv1.Validation{{MessageExpression: long}}
		}),
		"annotation": validating(func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.AuditAnnotations = []admissionv1.AuditAnnotation{{ValueExpression: long}}
		}),
	} {
		short := validating(func(*admissionv1.ValidatingAdmissionPolicySpec) {})
		if !refused(newPolicy(release.Default, p, nil).validate()) || !refused(newPolicy(release.Default, p, short).validate()) || refused(newPolicy(release.Default, p, p).validate()) || refused(newPolicy(release.Default, short, p).validate()) {
			t.Error(name)
		}
	}
	mutating := func(change func(s *admissionv1.MutatingAdmissionPolicySpec)) *admissionv1.MutatingAdmissionPolicy {
		p := &admissionv1.MutatingAdmissionPolicy{}
		change(&p.Spec)
		return p
	}
	for name, p := range map[string]*admissionv1.MutatingAdmissionPolicy{
		"variable": mutating(func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.Variables = []admissionv1.Variable{{Expression: long}}
		}),
		"condition": mutating(func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.MatchConditions = []admissionv1.MatchCondition{{Expression: long}}
		}),
		"apply": mutating(func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.Mutations = []admissionv1.Mutation{{ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: long}}}
		}),
		"patch": mutating(func(s *admissionv1.MutatingAdmissionPolicySpec) {
			s.Mutations = []admissionv1.Mutation{{JSONPatch: &admissionv1.JSONPatch{Expression: long}}}
		}),
	} {
		short := mutating(func(*admissionv1.MutatingAdmissionPolicySpec) {})
		if !refused(newMutating(release.Default, p, nil).validate()) || !refused(newMutating(release.Default, p, short).validate()) || refused(newMutating(release.Default, p, p).validate()) {
			t.Error("mutating: " + name)
		}
	}
	c := &admissionv1.ValidatingWebhookConfiguration{Webhooks: []admissionv1.ValidatingWebhook{
		{MatchConditions: []admissionv1.MatchCondition{{Expression: long[:expr.MaxTexts/2]}}}, {MatchConditions: []admissionv1.MatchCondition{{Expression: long[:expr.MaxTexts/2]}}},
	}}
	if !refused(validateHooks(release.Default, validatingHooks(c), tolerance{})) {
		t.Error("webhooks")
	}
}
