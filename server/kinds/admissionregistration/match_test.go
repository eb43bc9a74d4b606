package admissionregistration_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/rowlock/rowlock/server/kinds/admissionregistration"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

func TestResources(t *testing.T) {
	strategy := admissionregistration.ValidatingWebhookConfiguration(release.Default)
	for _, c := range []struct {
		resources []string
		fault     string
	}{
		{[]string{"pods", "pods/status"}, ""},
		{[]string{"*"}, ""},
		{[]string{"*/*"}, ""},
		{[]string{"*", "pods/status"}, ""},
		{nil, "resources: Required value"},
		{[]string{"*/*", "pods"}, "if '*/*' is present"},
		{[]string{"*", "pods"}, "must not specify other resources without subresources"},
		{[]string{"pods/*", "pods/log"}, "if 'pods/*' is present, must not specify pods/log"},
		{[]string{"*/log", "pods/log"}, "if '*/log' is present, must not specify pods/log"},
	} {
		url, none := "https://host/path", admissionv1.SideEffectClassNone
		w := &admissionv1.ValidatingWebhookConfiguration{Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "a.example.org", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: c.resources},
			}},
		}}}
		strategy.Default(w)
		err := strategy.Validate(context.Background(), w).ToAggregate()
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%v: %v, want %q", c.resources, err, c.fault)
		}
	}
}

// TestErrorsOfManyWebhooksEnd: many invalid webhooks have as many errors as an answer contains.
func TestErrorsOfManyWebhooksEnd(t *testing.T) {
	strategy := admissionregistration.ValidatingWebhookConfiguration(release.Default)
	w := &admissionv1.ValidatingWebhookConfiguration{Webhooks: make([]admissionv1.ValidatingWebhook, 20_000)}
	strategy.Default(w)
	if n := len(strategy.Validate(context.Background(), w)); n < rules.MaxErrors || n > rules.MaxErrors+20 {
		t.Errorf("%d errors", n)
	}
}

// TestExpressions compiles the expressions of a policy, each with the variables and functions of its place.
func TestExpressions(t *testing.T) {
	strategy := admissionregistration.ValidatingAdmissionPolicy(release.Default)
	policy := func(change func(*admissionv1.ValidatingAdmissionPolicySpec)) error {
		p := &admissionv1.ValidatingAdmissionPolicy{Spec: admissionv1.ValidatingAdmissionPolicySpec{
			ParamKind:        &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
			Validations:      []admissionv1.Validation{{Expression: "true"}},
		}}
		p.Name = "p"
		change(&p.Spec)
		strategy.Default(p)
		return strategy.Validate(context.Background(), p).ToAggregate()
	}
	for name, c := range map[string]struct {
		change func(*admissionv1.ValidatingAdmissionPolicySpec)
		fault  string
	}{
		"all that there is": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "c", Expression: "params == null || authorizer.path('/x').check('get').allowed()"}}
			s.Variables = []admissionv1.Variable{{Name: "a", Expression: "[1, 2]"}, {Name: "b", Expression: "variables.a.map(x, string(x))"}}
			s.Validations = []admissionv1.Validation{{Expression: "variables.b[0] == request.name && namespaceObject.metadata.name != ''", MessageExpression: "variables.b[1] + string(params.x)"}}
			s.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "k", ValueExpression: "null"}}
		}, ""},
		"no parameters": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.ParamKind = nil
			s.Validations[0].Expression = "params.x"
		}, "undeclared reference to 'params'"},
		"variables that come later": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Variables = []admissionv1.Variable{{Name: "a", Expression: "variables.b"}, {Name: "b", Expression: "1"}}
		}, "undefined field 'b'"},
		"the type of a variable": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Variables = []admissionv1.Variable{{Name: "a", Expression: "[1]"}}
			s.Validations[0].Expression = "variables.a == 'x'"
		}, "no matching overload"},
		"no authorizer in messages": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Validations[0].MessageExpression = "authorizer.path('/').check('get').reason()"
		}, "undeclared reference to 'authorizer'"},
		"a message that is no text": {func(s *admissionv1.ValidatingAdmissionPolicySpec) { s.Validations[0].MessageExpression = "1" }, "must evaluate to string but got int"},
		"an annotation that is none": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.AuditAnnotations = []admissionv1.AuditAnnotation{{Key: "k", ValueExpression: "1"}}
		}, "must evaluate to one of [string null_type] but got int"},
		"variables in a condition": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Variables = []admissionv1.Variable{{Name: "a", Expression: "1"}}
			s.MatchConditions = []admissionv1.MatchCondition{{Name: "c", Expression: "variables.a == 1"}}
		}, "undeclared reference to 'variables'"},
		"what the release before lacks": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Validations[0].Expression = "[1].all(i, v, v > i)"
		}, "undeclared reference"},
		"the sign of a quantity, both ways": {func(s *admissionv1.ValidatingAdmissionPolicySpec) {
			s.Validations[0].Expression = "quantity('1').sign() == sign(quantity('2'))"
		}, ""},
	} {
		err := policy(c.change)
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", name, err, c.fault)
		}
	}
}
