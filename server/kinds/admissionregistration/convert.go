package admissionregistration

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"

	"github.com/rowlock/rowlock/server/kinds"
)

// each converts the items of a list. No list stays none.
func each[A, B any](list []A, convert func(A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i := range list {
		out[i] = convert(list[i])
	}
	return out
}

// PolicyToV1 converts a ValidatingAdmissionPolicy of v1beta1 to the stored version. The two
// say the same in the same words.
func PolicyToV1(obj kinds.Object) (kinds.Object, error) {
	in, ok := obj.(*admissionv1beta1.ValidatingAdmissionPolicy)
	if !ok {
		return nil, fmt.Errorf("converting %T to admissionregistration.k8s.io/v1", obj)
	}
	s := &in.Spec
	out := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: in.ObjectMeta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		ParamKind:        (*admissionv1.ParamKind)(s.ParamKind),
		MatchConstraints: matchFromV1beta1(s.MatchConstraints),
		Validations:      each(s.Validations, func(x admissionv1beta1.Validation) admissionv1.Validation { return admissionv1.Validation(x) }),
		FailurePolicy:    (*admissionv1.FailurePolicyType)(s.FailurePolicy),
		AuditAnnotations: each(s.AuditAnnotations, func(x admissionv1beta1.AuditAnnotation) admissionv1.AuditAnnotation {
			return admissionv1.AuditAnnotation(x)
		}),
		MatchConditions: each(s.MatchConditions, func(x admissionv1beta1.MatchCondition) admissionv1.MatchCondition {
			return admissionv1.MatchCondition(x)
		}),
		Variables: each(s.Variables, func(x admissionv1beta1.Variable) admissionv1.Variable { return admissionv1.Variable(x) }),
	}, Status: admissionv1.ValidatingAdmissionPolicyStatus{ObservedGeneration: in.Status.ObservedGeneration, Conditions: in.Status.Conditions}}
	if t := in.Status.TypeChecking; t != nil {
		out.Status.TypeChecking = &admissionv1.TypeChecking{ExpressionWarnings: each(t.ExpressionWarnings, func(x admissionv1beta1.ExpressionWarning) admissionv1.ExpressionWarning {
			return admissionv1.ExpressionWarning(x)
		})}
	}
	return out, nil
}

// PolicyToV1beta1 is the way back.
func PolicyToV1beta1(obj kinds.Object) (kinds.Object, error) {
	in, ok := obj.(*admissionv1.ValidatingAdmissionPolicy)
	if !ok {
		return nil, fmt.Errorf("converting %T to admissionregistration.k8s.io/v1beta1", obj)
	}
	s := &in.Spec
	out := &admissionv1beta1.ValidatingAdmissionPolicy{ObjectMeta: in.ObjectMeta, Spec: admissionv1beta1.ValidatingAdmissionPolicySpec{
		ParamKind:        (*admissionv1beta1.ParamKind)(s.ParamKind),
		MatchConstraints: matchToV1beta1(s.MatchConstraints),
		Validations:      each(s.Validations, func(x admissionv1.Validation) admissionv1beta1.Validation { return admissionv1beta1.Validation(x) }),
		FailurePolicy:    (*admissionv1beta1.FailurePolicyType)(s.FailurePolicy),
		AuditAnnotations: each(s.AuditAnnotations, func(x admissionv1.AuditAnnotation) admissionv1beta1.AuditAnnotation {
			return admissionv1beta1.AuditAnnotation(x)
		}),
		MatchConditions: each(s.MatchConditions, func(x admissionv1.MatchCondition) admissionv1beta1.MatchCondition {
			return admissionv1beta1.MatchCondition(x)
		}),
		Variables: each(s.Variables, func(x admissionv1.Variable) admissionv1beta1.Variable { return admissionv1beta1.Variable(x) }),
	}, Status: admissionv1beta1.ValidatingAdmissionPolicyStatus{ObservedGeneration: in.Status.ObservedGeneration, Conditions: in.Status.Conditions}}
	if t := in.Status.TypeChecking; t != nil {
		out.Status.TypeChecking = &admissionv1beta1.TypeChecking{ExpressionWarnings: each(t.ExpressionWarnings, func(x admissionv1.ExpressionWarning) admissionv1beta1.ExpressionWarning {
			return admissionv1beta1.ExpressionWarning(x)
		})}
	}
	return out, nil
}

// BindingToV1 converts a ValidatingAdmissionPolicyBinding of v1beta1 to the stored version.
func BindingToV1(obj kinds.Object) (kinds.Object, error) {
	in, ok := obj.(*admissionv1beta1.ValidatingAdmissionPolicyBinding)
	if !ok {
		return nil, fmt.Errorf("converting %T to admissionregistration.k8s.io/v1", obj)
	}
	s := &in.Spec
	out := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: in.ObjectMeta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: s.PolicyName, MatchResources: matchFromV1beta1(s.MatchResources),
		ValidationActions: each(s.ValidationActions, func(x admissionv1beta1.ValidationAction) admissionv1.ValidationAction {
			return admissionv1.ValidationAction(x)
		}),
	}}
	if r := s.ParamRef; r != nil {
		out.Spec.ParamRef = &admissionv1.ParamRef{
			Name: r.Name, Namespace: r.Namespace, Selector: r.Selector,
			ParameterNotFoundAction: (*admissionv1.ParameterNotFoundActionType)(r.ParameterNotFoundAction),
		}
	}
	return out, nil
}

// BindingToV1beta1 is the way back.
func BindingToV1beta1(obj kinds.Object) (kinds.Object, error) {
	in, ok := obj.(*admissionv1.ValidatingAdmissionPolicyBinding)
	if !ok {
		return nil, fmt.Errorf("converting %T to admissionregistration.k8s.io/v1beta1", obj)
	}
	s := &in.Spec
	out := &admissionv1beta1.ValidatingAdmissionPolicyBinding{ObjectMeta: in.ObjectMeta, Spec: admissionv1beta1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: s.PolicyName, MatchResources: matchToV1beta1(s.MatchResources),
		ValidationActions: each(s.ValidationActions, func(x admissionv1.ValidationAction) admissionv1beta1.ValidationAction {
			return admissionv1beta1.ValidationAction(x)
		}),
	}}
	if r := s.ParamRef; r != nil {
		out.Spec.ParamRef = &admissionv1beta1.ParamRef{
			Name: r.Name, Namespace: r.Namespace, Selector: r.Selector,
			ParameterNotFoundAction: (*admissionv1beta1.ParameterNotFoundActionType)(r.ParameterNotFoundAction),
		}
	}
	return out, nil
}

func matchFromV1beta1(m *admissionv1beta1.MatchResources) *admissionv1.MatchResources {
	if m == nil {
		return nil
	}
	rule := func(r admissionv1beta1.NamedRuleWithOperations) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations(r)
	}
	return &admissionv1.MatchResources{
		NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector,
		ResourceRules: each(m.ResourceRules, rule), ExcludeResourceRules: each(m.ExcludeResourceRules, rule),
		MatchPolicy: (*admissionv1.MatchPolicyType)(m.MatchPolicy),
	}
}

func matchToV1beta1(m *admissionv1.MatchResources) *admissionv1beta1.MatchResources {
	if m == nil {
		return nil
	}
	rule := func(r admissionv1.NamedRuleWithOperations) admissionv1beta1.NamedRuleWithOperations {
		return admissionv1beta1.NamedRuleWithOperations(r)
	}
	return &admissionv1beta1.MatchResources{
		NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector,
		ResourceRules: each(m.ResourceRules, rule), ExcludeResourceRules: each(m.ExcludeResourceRules, rule),
		MatchPolicy: (*admissionv1beta1.MatchPolicyType)(m.MatchPolicy),
	}
}
