package admissionregistration_test

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/admissionregistration"
)

func TestResources(t *testing.T) {
	strategy := admissionregistration.ValidatingWebhookConfiguration(nil)
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

// TestChecker hands every expression over with what it may refer to.
func TestChecker(t *testing.T) {
	var seen []admissionregistration.Expression
	check := admissionregistration.Checker(func(e admissionregistration.Expression) string {
		seen = append(seen, e)
		return "no good"
	})
	strategy := admissionregistration.ValidatingAdmissionPolicy(check)
	p := &admissionv1.ValidatingAdmissionPolicy{Spec: admissionv1.ValidatingAdmissionPolicySpec{
		ParamKind:        &admissionv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}}},
		MatchConditions:  []admissionv1.MatchCondition{{Name: "c", Expression: "1"}},
		Variables:        []admissionv1.Variable{{Name: "a", Expression: "2"}, {Name: "b", Expression: "3"}},
		Validations:      []admissionv1.Validation{{Expression: "4", MessageExpression: "5"}},
	}}
	strategy.Default(p)
	if errs := strategy.Validate(context.Background(), p); len(errs) != 5 {
		t.Errorf("%d errors, want 5: %v", len(errs), errs)
	}
	if len(seen) != 5 || len(seen[1].Variables) != 0 || len(seen[2].Variables) != 1 || len(seen[3].Variables) != 2 || !seen[0].Params {
		t.Errorf("checked %+v", seen)
	}
}

func FuzzURL(f *testing.F) {
	f.Add("https://host/path", "/a/b")
	f.Add("http://u:p@x/y?q=1#f", "//")
	f.Fuzz(func(t *testing.T, url, path string) {
		admissionregistration.ValidateURL(url, field.NewPath("url"))
		admissionregistration.ValidateService("ns", "s", &path, 443, field.NewPath("service"))
	})
}
