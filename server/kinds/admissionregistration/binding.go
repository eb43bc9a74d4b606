package admissionregistration

import (
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// metaRules are the metadata rules of all kinds of the group: an update is checked as a new object.
var metaRules = kinds.MetaRules{Wholes: 1, AnyFinalizer: true}

// ValidatingAdmissionPolicyBinding has the rules for ValidatingAdmissionPolicyBindings.
var ValidatingAdmissionPolicyBinding = kinds.Typed[*admissionv1.ValidatingAdmissionPolicyBinding]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &metaRules,
	Default: func(obj *admissionv1.ValidatingAdmissionPolicyBinding) {
		defaultMatch(obj.Spec.MatchResources)
	},
	Counted: func(b *admissionv1.ValidatingAdmissionPolicyBinding) []any { return []any{b.Spec} },
	Validate: func(obj *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
		return validateBinding(&obj.Spec)
	},
	ValidateUpdate: func(obj, _ *admissionv1.ValidatingAdmissionPolicyBinding) field.ErrorList {
		return validateBinding(&obj.Spec)
	},
}.Strategy()

// ValidatingAdmissionPolicyBindingColumns is their Table form.
var ValidatingAdmissionPolicyBindingColumns = columns.Of(
	func(b *admissionv1.ValidatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramRefCell(b.Spec.ParamRef), columns.Since(b.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
	columns.Text("ParamRef", "ParamRef indicates the param resource which sets the configration param"),
	columns.Age(),
)

func paramRefCell(r *admissionv1.ParamRef) string {
	switch {
	case r == nil:
		return unset
	case r.Name != "" && r.Namespace != "":
		return r.Namespace + "/" + r.Name
	case r.Name != "":
		return "*/" + r.Name
	case r.Selector != nil:
		return r.Selector.String() // as the Go type is printed, not as selectors are written
	}
	return unset
}

func validateBinding(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) field.ErrorList {
	p := field.NewPath("spec")
	errs := validateBound(s.PolicyName, s.ParamRef, s.MatchResources, p)
	return append(errs, validateActions(s.ValidationActions, p.Child("validationActions"))...)
}

// validateBound checks the common fields of all bindings.
func validateBound(policy string, ref *admissionv1.ParamRef, m *admissionv1.MatchResources, p *field.Path) field.ErrorList {
	errs := rules.RequiredThen(policy, p.Child("policyName"), "", rules.Subdomain)
	errs = append(errs, rules.OptionalPtr(ref, p.Child("paramRef"), validateParamRef)...)
	return append(errs, validateMatchResources(m, p.Child("matchResources"))...)
}

func validateParamRef(r *admissionv1.ParamRef, p *field.Path) field.ErrorList {
	const exclusive = "name and selector are mutually exclusive"
	var errs field.ErrorList
	if r.Name != "" {
		errs = append(errs, rules.Messages(p.Child("name"), r.Name, apipath.ValidatePathSegmentName(r.Name, false))...)
		errs = rules.ForbiddenIf(errs, r.Selector != nil, p.Child("name"), exclusive)
	}
	if r.Selector != nil {
		errs = append(errs, rules.Selector(r.Selector, p.Child("selector"))...)
		errs = rules.ForbiddenIf(errs, r.Name != "", p.Child("selector"), exclusive)
	}
	errs = rules.RequiredIf(errs, r.Name == "" && r.Selector == nil, p, "one of name or selector must be specified")
	return append(errs, rules.RequiredOneOf(rules.Value(r.ParameterNotFoundAction), p.Child("parameterNotFoundAction"), admissionv1.DenyAction, admissionv1.AllowAction)...)
}

func validateActions(list []admissionv1.ValidationAction, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := rules.Seen[admissionv1.ValidationAction]{}
	for i, a := range rules.Until(&errs, list) {
		errs = append(errs, rules.OneOf(a, p.Index(i), admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)...)
		errs = rules.DuplicateIf(errs, seen.Again(a), p.Index(i), a)
	}
	if slices.Contains(list, admissionv1.Deny) && slices.Contains(list, admissionv1.Warn) {
		errs = append(errs, field.Invalid(p, rules.Shown(list), "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	return rules.RequiredIf(errs, len(list) == 0, p, "at least one validation action is required")
}
