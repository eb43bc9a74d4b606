package admissionregistration

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	apipath "k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	maxAnnotations     = 20
	maxValueExpression = 5 * 1024
)

// ValidatingAdmissionPolicy is how ValidatingAdmissionPolicies are written.
var ValidatingAdmissionPolicy = kinds.Typed[*admissionv1.ValidatingAdmissionPolicy]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Default: func(obj *admissionv1.ValidatingAdmissionPolicy) {
		s := &obj.Spec
		rules.DefaultTo(&s.FailurePolicy, admissionv1.Fail)
		defaultMatch(s.MatchConstraints)
	},
	Keep:    func(p, old *admissionv1.ValidatingAdmissionPolicy) { p.Status = old.Status },
	Counted: func(p *admissionv1.ValidatingAdmissionPolicy) []any { return []any{p.Spec} },
	Validate: func(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
		return newPolicy(p, nil).validate()
	},
	ValidateUpdate: func(p, old *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
		return newPolicy(p, old).validate()
	},
	ResetFields: []string{"status"},
}.Strategy()

// ValidatingAdmissionPolicyStatus is how their status is written.
var ValidatingAdmissionPolicyStatus = kinds.Typed[*admissionv1.ValidatingAdmissionPolicy]{
	PrepareForUpdate: func(p, old *admissionv1.ValidatingAdmissionPolicy) {
		metav1.ResetObjectMetaForStatus(&p.ObjectMeta, &old.ObjectMeta)
		p.Spec = old.Spec
	},
	ValidateUpdate: func(obj, _ *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
		return validatePolicyStatus(&obj.Status, field.NewPath("status"))
	},
	ResetFields: []string{"spec", "metadata"},
}.Strategy()

// ValidatingAdmissionPolicyColumns is their Table form.
var ValidatingAdmissionPolicyColumns = columns.Of(
	func(p *admissionv1.ValidatingAdmissionPolicy, now time.Time) []any {
		kind := "<unset>"
		if k := p.Spec.ParamKind; k != nil {
			kind = k.APIVersion + "/" + k.Kind
		}
		return []any{p.Name, int64(len(p.Spec.Validations)), kind, columns.Since(p.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Number("Validations", "Validations indicates the number of validation rules defined in this configuration"),
	columns.Text("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy"),
	columns.Age(),
)

func defaultMatch(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	rules.DefaultTo(&m.MatchPolicy, admissionv1.Equivalent)
	rules.DefaultTo(&m.NamespaceSelector, metav1.LabelSelector{})
	rules.DefaultTo(&m.ObjectSelector, metav1.LabelSelector{})
	for i := range m.ResourceRules {
		rules.DefaultTo(&m.ResourceRules[i].Scope, admissionv1.AllScopes)
	}
	for i := range m.ExcludeResourceRules {
		rules.DefaultTo(&m.ExcludeResourceRules[i].Scope, admissionv1.AllScopes)
	}
}

// policy is a policy under validation, with the one it replaces.
type policy struct {
	*admissionv1.ValidatingAdmissionPolicy
	old      *admissionv1.ValidatingAdmissionPolicy // nil for a new one
	compiler *expr.Compiler
}

func newPolicy(obj, old *admissionv1.ValidatingAdmissionPolicy) *policy {
	v := &policy{ValidatingAdmissionPolicy: obj, old: old, compiler: expr.NewCompiler()}
	if len(v.Spec.Variables) > 0 {
		v.compiler = expr.NewComposer()
	}
	return v
}

// offer is what its expressions may use.
func (v *policy) offer() expr.Offer {
	return expr.Offer{Params: v.Spec.ParamKind != nil, Authorizer: true}
}

func (v *policy) validate() field.ErrorList {
	s, p := &v.Spec, field.NewPath("spec")
	var errs field.ErrorList
	if s.FailurePolicy == nil {
		errs = append(errs, field.Required(p.Child("failurePolicy"), ""))
	} else {
		errs = append(errs, rules.OneOf(*s.FailurePolicy, p.Child("failurePolicy"), admissionv1.Fail, admissionv1.Ignore)...)
	}
	if s.ParamKind != nil {
		errs = append(errs, validateParamKind(s.ParamKind, p.Child("paramKind"))...)
	}
	if s.MatchConstraints == nil {
		errs = append(errs, field.Required(p.Child("matchConstraints"), ""))
	} else {
		errs = append(errs, validateMatchResources(s.MatchConstraints, p.Child("matchConstraints"))...)
		if len(s.MatchConstraints.ResourceRules) == 0 {
			errs = append(errs, field.Required(p.Child("matchConstraints", "resourceRules"), ""))
		}
	}
	if v.old == nil || !reflect.DeepEqual(s.ParamKind, v.old.Spec.ParamKind) || !reflect.DeepEqual(s.MatchConditions, v.old.Spec.MatchConditions) {
		var stored map[string]bool
		if v.old != nil {
			stored = texts(nil, v.old.Spec.MatchConditions)
		}
		errs = append(errs, validateMatchConditions(s.MatchConditions, v.offer(), stored, p.Child("matchConditions"))...)
	}
	errs = append(errs, v.variables(p.Child("variables"))...)
	if len(s.Validations) == 0 && len(s.AuditAnnotations) == 0 {
		const none = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(p.Child("validations"), none), field.Required(p.Child("auditAnnotations"), none))
	}
	for i := range s.Validations {
		errs = append(errs, v.validation(&s.Validations[i], p.Child("validations").Index(i))...)
	}
	return append(errs, v.annotations(p.Child("auditAnnotations"))...)
}

// The expressions that a policy had before, by where they stood.
func validationTexts(s *admissionv1.ValidatingAdmissionPolicySpec, text string) bool {
	return slices.ContainsFunc(s.Validations, func(x admissionv1.Validation) bool { return x.Expression == text })
}

func messageTexts(s *admissionv1.ValidatingAdmissionPolicySpec, text string) bool {
	return slices.ContainsFunc(s.Validations, func(x admissionv1.Validation) bool { return x.MessageExpression == text })
}

func annotationTexts(s *admissionv1.ValidatingAdmissionPolicySpec, text string) bool {
	return slices.ContainsFunc(s.AuditAnnotations, func(a admissionv1.AuditAnnotation) bool { return a.ValueExpression == text })
}

// source is an expression with all that the policy offers; in says whether an older
// policy had it at the same place.
func (v *policy) source(text string, gives []*cel.Type, in func(*admissionv1.ValidatingAdmissionPolicySpec, string) bool) expr.Source {
	return expr.Source{Text: text, Offer: v.offer(), Gives: gives, Stored: v.old != nil && in(&v.old.Spec, text)}
}

// faulty reports an expression that does not compile, as it was written.
func faulty(p *expr.Program, text string, at *field.Path) field.ErrorList {
	if err := p.Fault(); err != nil {
		return field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	return nil
}

var (
	identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)
	reserved   = []string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
		"let", "loop", "package", "namespace", "return", "var", "void", "while",
	}
)

func (v *policy) variables(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, x := range v.Spec.Variables {
		switch name := p.Index(i).Child("name"); {
		case strings.TrimSpace(x.Name) == "":
			errs = append(errs, field.Required(name, "name is not specified"))
		case !identifier.MatchString(x.Name) || slices.Contains(reserved, x.Name):
			errs = append(errs, field.Invalid(name, x.Name, "name is not a valid CEL identifier"))
		}
		if strings.TrimSpace(x.Expression) == "" {
			errs = append(errs, field.Required(p.Index(i).Child("expression"), "expression is not specified"))
			continue
		}
		declared := v.compiler.Declare(x.Name, v.source(x.Expression, nil, validationTexts))
		errs = append(errs, faulty(declared, x.Expression, p.Index(i).Child("expression"))...)
	}
	return errs
}

func (v *policy) validation(x *admissionv1.Validation, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(x.Expression) == "" {
		errs = append(errs, field.Required(p.Child("expression"), "expression is not specified"))
	} else {
		errs = append(errs, faulty(v.compiler.Compile(v.source(x.Expression, expr.Bool, validationTexts)), x.Expression, p.Child("expression"))...)
	}
	if x.MessageExpression != "" {
		at := p.Child("messageExpression")
		if strings.TrimSpace(x.MessageExpression) == "" {
			errs = append(errs, field.Invalid(at, x.MessageExpression, "must be non-empty if specified"))
		} else {
			message := v.source(x.MessageExpression, expr.String, messageTexts)
			message.Offer.Authorizer = false
			errs = append(errs, faulty(v.compiler.Compile(message), x.MessageExpression, at)...)
		}
	}
	switch message := strings.TrimSpace(x.Message); {
	case x.Message != "" && message == "":
		errs = append(errs, field.Invalid(p.Child("message"), x.Message, "message must be non-empty if specified"))
	case strings.ContainsAny(message, "\r\n"):
		errs = append(errs, field.Invalid(p.Child("message"), x.Message, "message must not contain line breaks"))
	}
	return append(errs, optional(x.Reason, p.Child("reason"),
		metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)...)
}

func (v *policy) annotations(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	list := v.Spec.AuditAnnotations
	if len(list) > maxAnnotations {
		errs = append(errs, field.Invalid(p, rules.Shown(list), fmt.Sprintf("must not have more than %d auditAnnotations", maxAnnotations)))
	}
	seen := map[string]bool{}
	for i, a := range list {
		key, value := p.Index(i).Child("key"), p.Index(i).Child("valueExpression")
		if v.Name == "" {
			errs = append(errs, field.Invalid(key, a.Key, "requires metadata.name be non-empty"))
		} else {
			errs = append(errs, rules.QualifiedName(v.Name+"/"+a.Key, key)...)
		}
		switch text := strings.TrimSpace(a.ValueExpression); {
		case text == "":
			errs = append(errs, field.Required(value, "valueExpression is not specified"))
		case len(text) > maxValueExpression:
			errs = append(errs, field.Required(value, fmt.Sprintf("must not exceed %d bytes in length", maxValueExpression)))
		default:
			compiled := v.source(a.ValueExpression, expr.StringOrNull, annotationTexts)
			compiled.Text = text
			errs = append(errs, faulty(v.compiler.Compile(compiled), a.ValueExpression, value)...)
		}
		if seen[a.Key] {
			errs = append(errs, field.Duplicate(key, a.Key))
		}
		seen[a.Key] = true
	}
	return errs
}

func validateParamKind(k *admissionv1.ParamKind, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := p.Child("apiVersion")
	switch strings.Count(k.APIVersion, "/") {
	case 0, 1:
		errs = append(errs, validateAPIVersion(k.APIVersion, at)...)
	default:
		errs = append(errs, field.Invalid(at, k.APIVersion, "unexpected GroupVersion string: "+k.APIVersion))
	}
	if k.Kind == "" {
		return append(errs, field.Required(p.Child("kind"), ""))
	}
	if faults := validation.IsDNS1035Label(strings.ToLower(k.Kind)); len(faults) > 0 {
		errs = append(errs, field.Invalid(p.Child("kind"), k.Kind, "may have mixed case, but should otherwise match: "+strings.Join(faults, ",")))
	}
	return errs
}

func validateAPIVersion(v string, p *field.Path) field.ErrorList {
	if v == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	group, version, slash := strings.Cut(v, "/")
	if !slash {
		group, version = "", v
	}
	var errs field.ErrorList
	if group != "" {
		if faults := validation.IsDNS1123Subdomain(group); len(faults) > 0 {
			errs = append(errs, field.Invalid(p, group, strings.Join(faults, ",")))
		}
	}
	if version == "" {
		return append(errs, field.Invalid(p, v, "version must be specified"))
	}
	if faults := validation.IsDNS1035Label(version); len(faults) > 0 {
		errs = append(errs, field.Invalid(p, version, strings.Join(faults, ",")))
	}
	return errs
}

func validatePolicyStatus(s *admissionv1.ValidatingAdmissionPolicyStatus, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.TypeChecking != nil {
		for i, w := range s.TypeChecking.ExpressionWarnings {
			at := p.Child("typeChecking", "expressionWarnings").Index(i)
			if w.Warning == "" {
				errs = append(errs, field.Required(at.Child("warning"), ""))
			}
			if strings.TrimSpace(w.FieldRef) == "" {
				errs = append(errs, field.Required(at.Child("fieldRef"), ""))
			}
		}
	}
	return append(errs, metavalidation.ValidateConditions(s.Conditions, p.Child("conditions"))...)
}

// ValidatingAdmissionPolicyBinding is how ValidatingAdmissionPolicyBindings are written.
var ValidatingAdmissionPolicyBinding = kinds.Typed[*admissionv1.ValidatingAdmissionPolicyBinding]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
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
		param := "<unset>"
		if r := b.Spec.ParamRef; r != nil {
			switch {
			case r.Name != "" && r.Namespace != "":
				param = r.Namespace + "/" + r.Name
			case r.Name != "":
				param = "*/" + r.Name
			case r.Selector != nil:
				param = r.Selector.String() // as the Go type is printed, not as selectors are written
			}
		}
		return []any{b.Name, b.Spec.PolicyName, param, columns.Since(b.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
	columns.Text("ParamRef", "ParamRef indicates the param resource which sets the configration param"),
	columns.Age(),
)

func validateBinding(s *admissionv1.ValidatingAdmissionPolicyBindingSpec) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if s.PolicyName == "" {
		errs = append(errs, field.Required(p.Child("policyName"), ""))
	} else {
		errs = append(errs, rules.Subdomain(s.PolicyName, p.Child("policyName"))...)
	}
	if s.ParamRef != nil {
		errs = append(errs, validateParamRef(s.ParamRef, p.Child("paramRef"))...)
	}
	errs = append(errs, validateMatchResources(s.MatchResources, p.Child("matchResources"))...)
	return append(errs, validateActions(s.ValidationActions, p.Child("validationActions"))...)
}

func validateParamRef(r *admissionv1.ParamRef, p *field.Path) field.ErrorList {
	const exclusive = "name and selector are mutually exclusive"
	var errs field.ErrorList
	if r.Name != "" {
		errs = append(errs, rules.Messages(p.Child("name"), r.Name, apipath.ValidatePathSegmentName(r.Name, false))...)
		if r.Selector != nil {
			errs = append(errs, field.Forbidden(p.Child("name"), exclusive))
		}
	}
	if r.Selector != nil {
		errs = append(errs, rules.Selector(r.Selector, p.Child("selector"))...)
		if r.Name != "" {
			errs = append(errs, field.Forbidden(p.Child("selector"), exclusive))
		}
	}
	if r.Name == "" && r.Selector == nil {
		errs = append(errs, field.Required(p, "one of name or selector must be specified"))
	}
	if a := r.ParameterNotFoundAction; a == nil || *a == "" {
		errs = append(errs, field.Required(p.Child("parameterNotFoundAction"), ""))
	} else {
		errs = append(errs, rules.OneOf(*a, p.Child("parameterNotFoundAction"), admissionv1.DenyAction, admissionv1.AllowAction)...)
	}
	return errs
}

func validateActions(list []admissionv1.ValidationAction, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := rules.Seen[admissionv1.ValidationAction]{}
	for i, a := range list {
		errs = append(errs, rules.OneOf(a, p.Index(i), admissionv1.Audit, admissionv1.Deny, admissionv1.Warn)...)
		if seen.Again(a) {
			errs = append(errs, field.Duplicate(p.Index(i), a))
		}
	}
	if slices.Contains(list, admissionv1.Deny) && slices.Contains(list, admissionv1.Warn) {
		errs = append(errs, field.Invalid(p, rules.Shown(list), "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"))
	}
	if len(list) == 0 {
		errs = append(errs, field.Required(p, "at least one validation action is required"))
	}
	return errs
}
