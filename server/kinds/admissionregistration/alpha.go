package admissionregistration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
)

// What policies that change objects have in common with those that refuse them is said in
// the words of v1, so that one code handles both.

// AlphaMatch is what a mutating policy or its binding says of the writes it is about. Nil is
// nil.
func AlphaMatch(m *admissionv1alpha1.MatchResources) *admissionv1.MatchResources {
	if m == nil {
		return nil
	}
	rule := func(r admissionv1alpha1.NamedRuleWithOperations) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations(r)
	}
	return &admissionv1.MatchResources{
		NamespaceSelector: m.NamespaceSelector, ObjectSelector: m.ObjectSelector,
		ResourceRules: each(m.ResourceRules, rule), ExcludeResourceRules: each(m.ExcludeResourceRules, rule),
		MatchPolicy: (*admissionv1.MatchPolicyType)(m.MatchPolicy),
	}
}

// AlphaParamRef is what the binding of a mutating policy refers to. Nil is nil.
func AlphaParamRef(r *admissionv1alpha1.ParamRef) *admissionv1.ParamRef {
	if r == nil {
		return nil
	}
	return &admissionv1.ParamRef{
		Name: r.Name, Namespace: r.Namespace, Selector: r.Selector,
		ParameterNotFoundAction: (*admissionv1.ParameterNotFoundActionType)(r.ParameterNotFoundAction),
	}
}

// AlphaConditions are the match conditions of a mutating policy.
func AlphaConditions(list []admissionv1alpha1.MatchCondition) []admissionv1.MatchCondition {
	return each(list, func(c admissionv1alpha1.MatchCondition) admissionv1.MatchCondition {
		return admissionv1.MatchCondition(c)
	})
}

// AlphaVariables are the variables of a mutating policy.
func AlphaVariables(list []admissionv1alpha1.Variable) []admissionv1.Variable {
	return each(list, func(v admissionv1alpha1.Variable) admissionv1.Variable { return admissionv1.Variable(v) })
}
