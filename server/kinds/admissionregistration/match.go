package admissionregistration

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation"
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
	for i, o := range r.Operations {
		errs = append(errs, rules.OneOf(o, at.Index(i), operations...)...)
	}
	return append(errs, validateRule(&r.Rule, p)...)
}

func validateRule(r *admissionv1.Rule, p *field.Path) field.ErrorList {
	errs := validateList(r.APIGroups, p.Child("apiGroups"), "API groups")
	errs = append(errs, validateList(r.APIVersions, p.Child("apiVersions"), "API versions")...)
	for i, v := range r.APIVersions {
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
	for i, v := range list {
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
	for i := range list {
		names := p.Index(i).Child("resourceNames")
		seen := rules.Seen[string]{}
		for k, n := range list[i].ResourceNames {
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
	for i, c := range list {
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
		return ValidateURL(*c.URL, p.Child("url"))
	default:
		s := c.Service
		return ValidateService(s.Namespace, s.Name, s.Path, rules.Value(s.Port), p.Child("service"))
	}
}

// ValidateURL checks the address of a webhook.
func ValidateURL(text string, p *field.Path) field.ErrorList {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(p, "url must be a valid URL: "+err.Error()+form)}
	}
	var errs field.ErrorList
	refuse := func(bad bool, v, message string) {
		errs = rules.InvalidIf(errs, bad, p, v, message)
	}
	refuse(u.Scheme != "https", u.Scheme, "'https' is the only allowed URL scheme"+form)
	refuse(u.Host == "", u.Host, "host must be specified"+form)
	refuse(u.User != nil, u.User.String(), "user information is not permitted in the URL")
	refuse(u.Fragment != "", u.Fragment, "fragments are not permitted in the URL")
	refuse(u.RawQuery != "", u.RawQuery, "query parameters are not permitted in the URL")
	return errs
}

// ValidateService checks the service of a webhook.
func ValidateService(namespace, name string, path *string, port int32, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	// A stock server takes the one for the other here, and clients know it so.
	errs = rules.RequiredIf(errs, namespace == "", p.Child("name"), "")
	errs = rules.RequiredIf(errs, name == "", p.Child("namespace"), "")
	if faults := validation.IsValidPortNum(int(port)); len(faults) > 0 {
		errs = append(errs, field.Invalid(p.Child("port"), port, "port is not valid: "+strings.Join(faults, ", ")))
	}
	if path == nil || *path == "" || *path == "/" {
		return errs
	}
	return append(errs, validatePath(*path, p.Child("path"))...)
}

func validatePath(path string, p *field.Path) field.ErrorList {
	if path == "//" {
		return field.ErrorList{field.Invalid(p, path, "segment[0] may not be empty")}
	}
	errs := rules.InvalidIf(nil, !strings.HasPrefix(path, "/"), p, path, "must start with a '/'")
	for i, step := range strings.Split(strings.TrimSuffix(path[1:], "/"), "/") {
		if step == "" {
			errs = append(errs, field.Invalid(p, path, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, m := range validation.IsDNS1123Subdomain(step) {
			errs = append(errs, field.Invalid(p, path, fmt.Sprintf("segment[%d]: %v", i, m)))
		}
	}
	return errs
}
