package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	all           = "*"
	maxConditions = 64
)

var operations = []admissionv1.OperationType{
	admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Delete, admissionv1.Update,
}

func validateOperations(r *admissionv1.RuleWithOperations, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := p.Child("operations")
	errs = rules.RequiredIf(errs, len(r.Operations) == 0, at, "")
	if len(r.Operations) > 1 && slices.Contains(r.Operations, admissionv1.OperationAll) {
		errs = append(errs, field.Invalid(at, rules.Shown(r.Operations), "if '*' is present, must not specify other operations"))
	}
	for i, o := range rules.Until(&errs, r.Operations) {
		errs = append(errs, rules.OneOf(o, at.Index(i), operations...)...)
	}
	return append(errs, validateRule(&r.Rule, p)...)
}

func validateRule(r *admissionv1.Rule, p *field.Path) field.ErrorList {
	errs := validateList(r.APIGroups, p.Child("apiGroups"), "API groups")
	errs = append(errs, validateList(r.APIVersions, p.Child("apiVersions"), "API versions")...)
	for i, v := range rules.Until(&errs, r.APIVersions) {
		errs = rules.RequiredIf(errs, v == "", p.Child("apiVersions").Index(i), "")
	}
	errs = append(errs, validateResources(r.Resources, p.Child("resources"))...)
	return append(errs, optional(r.Scope, p.Child("scope"), admissionv1.AllScopes, admissionv1.ClusterScope, admissionv1.NamespacedScope)...)
}

// validateList checks a list that a wildcard must be alone in.
func validateList(list []string, p *field.Path, noun string) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(p, "")}
	case len(list) > 1 && slices.Contains(list, all):
		return field.ErrorList{field.Invalid(p, list, "if '*' is present, must not specify other "+noun)}
	default:
		return nil
	}
}

// validateResources checks "pods", "pods/status" and their wildcards.
func validateResources(list []string, p *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, len(list) == 0, p, "")
	anySub, anyResource := map[string]bool{}, map[string]bool{}
	everything, star, plain := false, false, false
	for i, v := range rules.Until(&errs, list) {
		resource, sub, slash := strings.Cut(v, "/")
		switch {
		case v == "":
			errs = append(errs, field.Required(p.Index(i), ""))
			continue
		case !slash:
			star = star || v == all
			plain = v != all
			continue
		}
		everything = everything || v == "*/*"
		if anySub[resource] {
			errs = append(errs, field.Invalid(p.Index(i), v, fmt.Sprintf("if '%s/*' is present, must not specify %s", resource, v)))
		}
		if anyResource[sub] {
			errs = append(errs, field.Invalid(p.Index(i), v, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, v)))
		}
		anySub[resource] = anySub[resource] || sub == all
		anyResource[sub] = anyResource[sub] || resource == all
	}
	errs = rules.InvalidIf(errs, len(list) > 1 && everything, p, list, "if '*/*' is present, must not specify other resources")
	return rules.InvalidIf(errs, star && plain, p, list, "if '*' is present, must not specify other resources without subresources")
}

func validateNamedRules(list []admissionv1.NamedRuleWithOperations, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules.Until(&errs, list) {
		names := p.Index(i).Child("resourceNames")
		seen := rules.Seen[string]{}
		for k, n := range rules.Until(&errs, list[i].ResourceNames) {
			errs = append(errs, rules.Messages(names.Index(k), n, apipath.ValidatePathSegmentName(n, false))...)
			errs = rules.DuplicateIf(errs, seen.Again(n), names.Index(k), n)
		}
		errs = append(errs, validateOperations(&list[i].RuleWithOperations, p.Index(i))...)
	}
	return errs
}

func validateMatchResources(m *admissionv1.MatchResources, p *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	var errs field.ErrorList
	if m.MatchPolicy == nil {
		errs = append(errs, field.Required(p.Child("matchPolicy"), ""))
	} else {
		errs = append(errs, rules.OneOf(*m.MatchPolicy, p.Child("matchPolicy"), admissionv1.Equivalent, admissionv1.Exact)...)
	}
	if m.NamespaceSelector == nil {
		errs = append(errs, field.Required(p.Child("namespaceSelector"), ""))
	} else {
		errs = append(errs, rules.Selector(m.NamespaceSelector, p.Child("namespaceSelector"))...)
	}
	if m.ObjectSelector == nil {
		errs = append(errs, field.Required(p.Child("objectSelector"), ""))
	} else {
		errs = append(errs, rules.Selector(m.ObjectSelector, p.Child("objectSelector"))...)
	}
	errs = append(errs, validateNamedRules(m.ResourceRules, p.Child("resourceRules"))...)
	return append(errs, validateNamedRules(m.ExcludeResourceRules, p.Child("excludeResourceRules"))...)
}

// texts adds the expressions of match conditions to a set.
func texts(set map[string]bool, list []admissionv1.MatchCondition) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	for _, c := range list {
		set[c.Expression] = true
	}
	return set
}

// validateMatchConditions checks conditions, of which those in stored were accepted
// before.
func validateMatchConditions(compiler *expr.Compiler, list []admissionv1.MatchCondition, offer expr.Offer, stored map[string]bool, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) > maxConditions {
		errs = append(errs, field.TooMany(p, len(list), maxConditions))
	}
	seen := map[string]bool{}
	for i, c := range rules.Until(&errs, list) {
		text := strings.TrimSpace(c.Expression)
		if text == "" {
			errs = append(errs, field.Required(p.Index(i).Child("expression"), ""))
		} else {
			compiled := compiler.Compile(expr.Source{Text: text, Offer: offer, Gives: expr.Bool, Stored: stored[text]})
			errs = append(errs, faulty(compiled, text, p.Index(i).Child("expression"))...)
		}
		if c.Name == "" {
			errs = append(errs, field.Required(p.Index(i).Child("name"), ""))
			continue
		}
		errs = append(errs, rules.QualifiedName(c.Name, p.Index(i).Child("name"))...)
		errs = rules.DuplicateIf(errs, seen[c.Name], p.Index(i).Child("name"), c.Name)
		seen[c.Name] = true
	}
	return errs
}

func validateClient(c *admissionv1.WebhookClientConfig, p *field.Path) field.ErrorList {
	switch {
	case (c.URL == nil) == (c.Service == nil):
		return field.ErrorList{field.Required(p, "exactly one of url or service is required")}
	case c.URL != nil:
		return rules.WebhookURL(*c.URL, p.Child("url"))
	default:
		s := c.Service
		return rules.WebhookService(s.Namespace, s.Name, s.Path, rules.Value(s.Port), p.Child("service"))
	}
}
