// Package admissionregistration holds the strategies of webhook configurations and admission
// policies. Packages admission/webhook and admission/policy apply them to requests.
package admissionregistration

import (
	"reflect"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const defaultTimeout = int32(10) // seconds

// hook is the common part of validating and mutating webhooks.
type hook struct {
	name       string
	client     *admissionv1.WebhookClientConfig
	rules      []admissionv1.RuleWithOperations
	failure    **admissionv1.FailurePolicyType
	match      **admissionv1.MatchPolicyType
	namespaces **metav1.LabelSelector
	objects    **metav1.LabelSelector
	effects    *admissionv1.SideEffectClass
	timeout    **int32
	versions   []string
	conditions []admissionv1.MatchCondition
	reinvoke   **admissionv1.ReinvocationPolicyType // nil for validating webhooks
}

func validatingHooks(c *admissionv1.ValidatingWebhookConfiguration) []hook {
	out := make([]hook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		out[i] = hook{
			name: w.Name, client: &w.ClientConfig, rules: w.Rules, failure: &w.FailurePolicy, match: &w.MatchPolicy,
			namespaces: &w.NamespaceSelector, objects: &w.ObjectSelector, effects: w.SideEffects, timeout: &w.TimeoutSeconds,
			versions: w.AdmissionReviewVersions, conditions: w.MatchConditions,
		}
	}
	return out
}

func mutatingHooks(c *admissionv1.MutatingWebhookConfiguration) []hook {
	out := make([]hook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		out[i] = hook{
			name: w.Name, client: &w.ClientConfig, rules: w.Rules, failure: &w.FailurePolicy, match: &w.MatchPolicy,
			namespaces: &w.NamespaceSelector, objects: &w.ObjectSelector, effects: w.SideEffects, timeout: &w.TimeoutSeconds,
			versions: w.AdmissionReviewVersions, conditions: w.MatchConditions, reinvoke: &w.ReinvocationPolicy,
		}
	}
	return out
}

// ValidatingWebhookConfiguration returns how configurations of validating webhooks are written.
func ValidatingWebhookConfiguration(of release.Version) kinds.Strategy {
	return webhooks(of, validatingHooks, func(c *admissionv1.ValidatingWebhookConfiguration) any { return c.Webhooks })
}

// MutatingWebhookConfiguration returns how configurations of mutating webhooks are written.
func MutatingWebhookConfiguration(of release.Version) kinds.Strategy {
	return webhooks(of, mutatingHooks, func(c *admissionv1.MutatingWebhookConfiguration) any { return c.Webhooks })
}

// ValidatingWebhookConfigurationColumns and MutatingWebhookConfigurationColumns
// are the Table forms.
var (
	ValidatingWebhookConfigurationColumns = columns.Of(
		func(c *admissionv1.ValidatingWebhookConfiguration, now time.Time) []any {
			return []any{c.Name, int64(len(c.Webhooks)), columns.Since(c.CreationTimestamp, now)}
		}, webhookColumns()...)
	MutatingWebhookConfigurationColumns = columns.Of(
		func(c *admissionv1.MutatingWebhookConfiguration, now time.Time) []any {
			return []any{c.Name, int64(len(c.Webhooks)), columns.Since(c.CreationTimestamp, now)}
		}, webhookColumns()...)
)

func webhookColumns() []columns.Column {
	return []columns.Column{
		columns.Name(),
		columns.Number("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration"),
		columns.Age(),
	}
}

func webhooks[T kinds.Object](of release.Version, list func(T) []hook, content func(T) any) kinds.Strategy {
	return kinds.Typed[T]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &metaRules,
		Default: func(c T) {
			for _, h := range list(c) {
				defaultHook(&h)
			}
		},
		PrepareForCreate: func(c T) { c.SetGeneration(1) },
		PrepareForUpdate: func(c, old T) { // absent and empty are not the same here, as they are where specs are counted
			c.SetGeneration(old.GetGeneration())
			if !reflect.DeepEqual(content(c), content(old)) {
				c.SetGeneration(old.GetGeneration() + 1)
			}
		},
		Validate: func(c T) field.ErrorList { return validateHooks(of, list(c), tolerance{}) },
		ValidateUpdate: func(c, old T) field.ErrorList {
			return validateHooks(of, list(c), toleranceOf(list(c), list(old)))
		},
	}.Strategy()
}

func defaultHook(h *hook) {
	rules.DefaultTo(h.failure, admissionv1.Fail)
	rules.DefaultTo(h.match, admissionv1.Equivalent)
	rules.DefaultTo(h.namespaces, metav1.LabelSelector{})
	rules.DefaultTo(h.objects, metav1.LabelSelector{})
	rules.DefaultTo(h.timeout, defaultTimeout)
	if h.reinvoke != nil {
		rules.DefaultTo(h.reinvoke, admissionv1.NeverReinvocationPolicy)
	}
	if s := h.client.Service; s != nil {
		rules.DefaultTo(&s.Port, 443)
	}
	for i := range h.rules {
		rules.DefaultTo(&h.rules[i].Scope, admissionv1.AllScopes)
	}
}

// tolerance keeps configurations writable that break rules made after them.
type tolerance struct {
	sideEffects, versions, names, selectors bool
	conditions                              bool            // not changed: not compiled again
	stored                                  map[string]bool // expressions that were accepted before
}

func toleranceOf(next, old []hook) tolerance {
	t := tolerance{conditions: len(next) == len(old)}
	seen := rules.Seen[string]{}
	for i, h := range old {
		t.sideEffects = t.sideEffects || h.effects == nil || !slices.Contains(quiet, *h.effects)
		t.versions = t.versions || len(h.versions) > 0 && !rules.KnowsReview(h.versions)
		t.selectors = t.selectors || rules.SelectorInvalid(*h.namespaces) || rules.SelectorInvalid(*h.objects)
		t.names = seen.Again(h.name) || t.names
		t.stored = texts(t.stored, h.conditions)
		t.conditions = t.conditions && reflect.DeepEqual(next[i].conditions, h.conditions)
	}
	return t
}

var (
	quiet = []admissionv1.SideEffectClass{admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun}
	loud  = []admissionv1.SideEffectClass{admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun, admissionv1.SideEffectClassSome, admissionv1.SideEffectClassUnknown}
)

func validateHooks(of release.Version, list []hook, t tolerance) field.ErrorList {
	if !t.conditions && expr.TooLong(hookTexts(list)) {
		return field.ErrorList{field.Forbidden(field.NewPath("webhooks"), expr.LongDetail())} // before any of them is compiled
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range rules.Until(&errs, list) {
		h, p := &list[i], field.NewPath("webhooks").Index(i)
		errs = append(errs, validateHook(of, h, t, p)...)
		errs = append(errs, rules.ReviewVersions(h.versions, t.versions, "must specify one of v1, v1beta1", p.Child("admissionReviewVersions"))...)
		errs = rules.DuplicateIf(errs, h.name != "" && seen[h.name] && !t.names, p.Child("name"), h.name)
		seen[h.name] = true
		if len(errs) > rules.MaxErrors {
			break
		}
	}
	return errs
}

func validateHook(of release.Version, h *hook, t tolerance, p *field.Path) field.ErrorList {
	errs := validation.IsFullyQualifiedName(p.Child("name"), h.name)
	errs = append(errs, rules.EachPtr(h.rules, p.Child("rules"), validateOperations)...)
	errs = append(errs, optional(*h.failure, p.Child("failurePolicy"), admissionv1.Fail, admissionv1.Ignore)...)
	errs = append(errs, optional(*h.match, p.Child("matchPolicy"), admissionv1.Equivalent, admissionv1.Exact)...)
	allowed := quiet
	if t.sideEffects {
		allowed = loud
	}
	if h.effects == nil {
		errs = append(errs, field.Required(p.Child("sideEffects"), "must specify one of "+joined(allowed)))
	} else {
		errs = append(errs, rules.OneOf(*h.effects, p.Child("sideEffects"), allowed...)...)
	}
	if s := *h.timeout; s != nil && (*s < 1 || *s > 30) {
		errs = append(errs, field.Invalid(p.Child("timeoutSeconds"), *s, "the timeout value must be between 1 and 30 seconds"))
	}
	errs = append(errs, rules.LooseSelector(*h.namespaces, t.selectors, p.Child("namespaceSelector"))...)
	errs = append(errs, rules.LooseSelector(*h.objects, t.selectors, p.Child("objectSelector"))...)
	if h.reinvoke != nil {
		errs = append(errs, optional(*h.reinvoke, p.Child("reinvocationPolicy"), admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy)...)
	}
	errs = append(errs, validateClient(h.client, p.Child("clientConfig"))...)
	if !t.conditions {
		errs = append(errs, validateMatchConditions(expr.NewCompiler(of), h.conditions, expr.Offer{Authorizer: true}, t.stored, p.Child("matchConditions"))...)
	}
	return errs
}

// optional checks an enumeration that may be absent.
func optional[T ~string](v *T, p *field.Path, supported ...T) field.ErrorList {
	if v == nil {
		return nil
	}
	return rules.OneOf(*v, p, supported...)
}

func joined[T ~string](list []T) string {
	out := ""
	for i, v := range list {
		if i > 0 {
			out += ", "
		}
		out += string(v)
	}
	return out
}
