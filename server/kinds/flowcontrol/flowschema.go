// Package flowcontrol holds the strategies of FlowSchemas and PriorityLevelConfigurations,
// and the objects of both that every cluster has.
package flowcontrol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const (
	defaultPrecedence = 1000
	maxPrecedence     = flowcontrolv1.FlowSchemaMaxMatchingPrecedence
	all               = "*"
)

// FlowSchema returns the strategy of FlowSchemas.
func FlowSchema(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	return kinds.Typed[*flowcontrolv1.FlowSchema]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.AsNewMeta,
		Default: func(s *flowcontrolv1.FlowSchema) {
			s.Spec.MatchingPrecedence = cmp.Or(s.Spec.MatchingPrecedence, defaultPrecedence)
		},
		Counted:  func(s *flowcontrolv1.FlowSchema) []any { return []any{s.Spec} },
		Validate: func(s *flowcontrolv1.FlowSchema) field.ErrorList { return validateFlowSchema(s, now) },
		ValidateUpdate: func(obj, _ *flowcontrolv1.FlowSchema) field.ErrorList {
			return validateFlowSchema(obj, now)
		},
		UnconditionalUpdate: true,
		Status: &kinds.Status[*flowcontrolv1.FlowSchema]{
			KeepsMetadata: true,
			Validate: func(obj, _ *flowcontrolv1.FlowSchema) field.ErrorList {
				return validateSchemaConditions(obj.Status.Conditions, now)
			},
			ResetFields: []string{"metadata"},
		},
	}.Strategy()
}

// FlowSchemaColumns is their Table form.
var FlowSchemaColumns = flowSchemaColumns()

// flowSchemaColumns shows the rows of a list in the order in which requests meet them.
func flowSchemaColumns() kinds.Columns {
	c := columns.Of(flowSchemaCells,
		columns.Name(),
		columns.Text("PriorityLevel", flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"]),
		columns.Text("MatchingPrecedence", flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["matchingPrecedence"]),
		columns.Text("DistinguisherMethod", flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()["distinguisherMethod"]),
		columns.Age(),
		columns.Text("MissingPL", "references a broken or non-existent PriorityLevelConfiguration"),
	)
	c.Order = func(a, b kinds.Object) int {
		x, y := a.(*flowcontrolv1.FlowSchema), b.(*flowcontrolv1.FlowSchema)
		return cmp.Or(cmp.Compare(x.Spec.MatchingPrecedence, y.Spec.MatchingPrecedence), cmp.Compare(x.Name, y.Name))
	}
	return c
}

func flowSchemaCells(s *flowcontrolv1.FlowSchema, now time.Time) []any {
	method, missing := "<none>", "?"
	if m := s.Spec.DistinguisherMethod; m != nil {
		method = string(m.Type)
	}
	for _, c := range s.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
			missing = string(c.Status)
			break
		}
	}
	return []any{
		s.Name, s.Spec.PriorityLevelConfiguration.Name, int64(s.Spec.MatchingPrecedence), method,
		columns.Since(s.CreationTimestamp, now), missing,
	}
}

// now are the rules of releases after 1.32.
func validateFlowSchema(s *flowcontrolv1.FlowSchema, now bool) field.ErrorList {
	p := field.NewPath("spec")
	errs := validateFlowSchemaSpec(s.Name, &s.Spec, p)
	for _, fixed := range MandatorySchemas() {
		if fixed.Name == s.Name && !rules.Same(s.Spec, fixed.Spec) {
			errs = append(errs, field.Invalid(p, rules.Shown(s.Spec), fmt.Sprintf("spec of '%s' must equal the fixed value", s.Name)))
		}
	}
	return append(errs, validateSchemaConditions(s.Status.Conditions, now)...)
}

func validateSchemaConditions(list []flowcontrolv1.FlowSchemaCondition, now bool) field.ErrorList {
	names := make([]string, len(list))
	for i := range list {
		names[i] = string(list[i].Type)
	}
	return validateConditionTypes(names, now)
}

// validateConditionTypes checks that conditions are named, each once.
func validateConditionTypes(names []string, now bool) field.ErrorList {
	p := field.NewPath("status", "conditions")
	var errs field.ErrorList
	missing := "must not be empty"
	if now {
		missing = ""
	}
	seen := rules.Seen[string]{}
	for i, n := range rules.Until(&errs, names) {
		errs = rules.DuplicateIf(errs, seen.Again(n), p.Index(i).Child("type"), n)
		errs = rules.RequiredIf(errs, n == "", p.Index(i).Child("type"), missing)
	}
	return errs
}

func validateFlowSchemaSpec(name string, s *flowcontrolv1.FlowSchemaSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	precedence := p.Child("matchingPrecedence")
	errs = rules.InvalidIf(errs, s.MatchingPrecedence <= 0, precedence, s.MatchingPrecedence, "must be a positive value")
	if s.MatchingPrecedence > maxPrecedence {
		errs = append(errs, field.Invalid(precedence, s.MatchingPrecedence, fmt.Sprintf("must not be greater than %d", maxPrecedence)))
	}
	errs = rules.InvalidIf(errs, s.MatchingPrecedence == 1 && name != flowcontrolv1.FlowSchemaNameExempt, precedence, s.MatchingPrecedence, "only the schema named 'exempt' may have matchingPrecedence 1")
	if m := s.DistinguisherMethod; m != nil &&
		m.Type != flowcontrolv1.FlowDistinguisherMethodByNamespaceType && m.Type != flowcontrolv1.FlowDistinguisherMethodByUserType {
		errs = append(errs, field.NotSupported(p.Child("distinguisherMethod", "type"), rules.Shown(m),
			[]flowcontrolv1.FlowDistinguisherMethodType{flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType}))
	}
	errs = append(errs, rules.RequiredThen(s.PriorityLevelConfiguration.Name, p.Child("priorityLevelConfiguration", "name"), "must reference a priority level", rules.Subdomain)...)
	return append(errs, rules.EachPtr(s.Rules, p.Child("rules"), validatePolicyRules)...)
}

func validatePolicyRules(r *flowcontrolv1.PolicyRulesWithSubjects, p *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, len(r.Subjects) == 0, p.Child("subjects"), "subjects must contain at least one value")
	errs = append(errs, rules.EachPtr(r.Subjects, p.Child("subjects"), validateSubject)...)
	errs = rules.RequiredIf(errs, len(r.ResourceRules) == 0 && len(r.NonResourceRules) == 0, p, "at least one of resourceRules and nonResourceRules has to be non-empty")
	errs = append(errs, rules.EachPtr(r.ResourceRules, p.Child("resourceRules"), validateResourceRule)...)
	return append(errs, rules.EachPtr(r.NonResourceRules, p.Child("nonResourceRules"), validateURLRule)...)
}

func validateSubject(s *flowcontrolv1.Subject, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch s.Kind {
	case flowcontrolv1.SubjectKindServiceAccount:
		errs = validateAccount(s.ServiceAccount, p.Child("serviceAccount"))
	case flowcontrolv1.SubjectKindUser:
		if s.User == nil {
			errs = append(errs, field.Required(p.Child("user"), "user is required when subject kind is 'User'"))
		} else if s.User.Name == "" {
			errs = append(errs, field.Required(p.Child("user", "name"), ""))
		}
	case flowcontrolv1.SubjectKindGroup:
		if s.Group == nil {
			errs = append(errs, field.Required(p.Child("group"), "group is required when subject kind is 'Group'"))
		} else if s.Group.Name == "" {
			errs = append(errs, field.Required(p.Child("group", "name"), ""))
		}
	default:
		return field.ErrorList{field.NotSupported(p.Child("kind"), s.Kind,
			[]flowcontrolv1.SubjectKind{flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser})}
	}
	forbid := func(given bool, kind flowcontrolv1.SubjectKind, name string) {
		if given && s.Kind != kind {
			errs = append(errs, field.Forbidden(p.Child(name), fmt.Sprintf("%s is forbidden when subject kind is not '%s'", name, kind)))
		}
	}
	forbid(s.ServiceAccount != nil, flowcontrolv1.SubjectKindServiceAccount, "serviceAccount")
	forbid(s.User != nil, flowcontrolv1.SubjectKindUser, "user")
	forbid(s.Group != nil, flowcontrolv1.SubjectKindGroup, "group")
	return errs
}

func validateAccount(s *flowcontrolv1.ServiceAccountSubject, p *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(p, "serviceAccount is required when subject kind is 'ServiceAccount'")}
	}
	var errs field.ErrorList
	switch s.Name {
	case "":
		errs = append(errs, field.Required(p.Child("name"), ""))
	case flowcontrolv1.NameAll:
	default:
		errs = append(errs, rules.Messages(p.Child("name"), s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))...)
	}
	if s.Namespace == "" {
		return append(errs, field.Required(p.Child("namespace"), "must specify namespace for service account"))
	}
	return append(errs, rules.Messages(p.Child("namespace"), s.Namespace, apivalidation.ValidateNamespaceName(s.Namespace, false))...)
}

var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

func validateVerbs(list []string, p *field.Path) field.ErrorList {
	switch {
	case len(list) == 0:
		return field.ErrorList{field.Required(p, "verbs must contain at least one value")}
	case slices.Contains(list, all):
		return alone(list, p, "verbs")
	}
	for _, v := range list {
		if !slices.Contains(verbs, v) {
			return field.ErrorList{field.NotSupported(p, list, verbs)}
		}
	}
	return nil
}

// alone checks that a wildcard is the only member.
func alone(list []string, p *field.Path, noun string) field.ErrorList {
	if len(list) > 1 && slices.Contains(list, all) {
		return field.ErrorList{field.Invalid(p, list, "if '*' is present, must not specify other "+noun)}
	}
	return nil
}

func validateResourceRule(r *flowcontrolv1.ResourcePolicyRule, p *field.Path) field.ErrorList {
	errs := validateVerbs(r.Verbs, p.Child("verbs"))
	errs = rules.RequiredIf(errs, len(r.APIGroups) == 0, p.Child("apiGroups"), "resource rules must supply at least one api group")
	errs = append(errs, alone(r.APIGroups, p.Child("apiGroups"), "api groups")...)
	errs = rules.RequiredIf(errs, len(r.Resources) == 0, p.Child("resources"), "resource rules must supply at least one resource")
	errs = append(errs, alone(r.Resources, p.Child("resources"), "resources")...)
	namespaces := p.Child("namespaces")
	switch {
	case len(r.Namespaces) == 0 && !r.ClusterScope:
		errs = append(errs, field.Required(namespaces, "resource rules that are not cluster scoped must supply at least one namespace"))
	case slices.Contains(r.Namespaces, all):
		errs = append(errs, alone(r.Namespaces, namespaces, "namespaces")...)
	default:
		for i, n := range rules.Until(&errs, r.Namespaces) {
			for _, m := range apivalidation.ValidateNamespaceName(n, false) {
				errs = append(errs, field.Invalid(namespaces.Index(i), n, "each member of this list must be '*' or a DNS-1123 label; "+m))
			}
		}
	}
	return errs
}

func validateURLRule(r *flowcontrolv1.NonResourcePolicyRule, p *field.Path) field.ErrorList {
	errs := validateVerbs(r.Verbs, p.Child("verbs"))
	urls := p.Child("nonResourceURLs")
	switch {
	case len(r.NonResourceURLs) == 0:
		errs = append(errs, field.Required(urls, "nonResourceURLs must contain at least one value"))
	case slices.Contains(r.NonResourceURLs, all):
		errs = append(errs, alone(r.NonResourceURLs, urls, "non-resource URLs")...)
	default:
		for i, u := range rules.Until(&errs, r.NonResourceURLs) {
			if fault := urlFault(u); fault != "" {
				errs = append(errs, field.Invalid(urls.Index(i), u, fault))
			}
		}
	}
	return errs
}

func urlFault(u string) string {
	stars := strings.Count(u, all)
	switch {
	case u == "":
		return "must not be empty"
	case u == "/":
		return ""
	case !strings.HasPrefix(u, "/"):
		return "must start with slash"
	case strings.Contains(u, " "):
		return "must not contain white-space"
	case strings.Contains(u, "//"):
		return "must not contain double slash"
	case stars > 1 || stars == 1 && !strings.HasSuffix(u, "/*"):
		return "wildcard can only do suffix matching"
	default:
		return ""
	}
}
