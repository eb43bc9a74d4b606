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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema/jsonpath"
)

const (
	maxAnnotations     = 20
	maxValueExpression = 5 * 1024
)

// ValidatingAdmissionPolicy returns the strategy of ValidatingAdmissionPolicies.
func ValidatingAdmissionPolicy(of release.Version) kinds.Strategy {
	return kinds.Typed[*admissionv1.ValidatingAdmissionPolicy]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &metaRules,
		Default: func(obj *admissionv1.ValidatingAdmissionPolicy) {
			s := &obj.Spec
			rules.DefaultTo(&s.FailurePolicy, admissionv1.Fail)
			defaultMatch(s.MatchConstraints)
		},
		Counted: func(p *admissionv1.ValidatingAdmissionPolicy) []any { return []any{p.Spec} },
		Validate: func(p *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
			return newPolicy(of, p, nil).validate()
		},
		ValidateUpdate: func(p, old *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
			return newPolicy(of, p, old).validate()
		},
		Status: &kinds.Status[*admissionv1.ValidatingAdmissionPolicy]{
			Meta: &kinds.MetaRules{Updates: 1, AnyFinalizer: true},
			Prepare: func(p, old *admissionv1.ValidatingAdmissionPolicy) {
				metav1.ResetObjectMetaForStatus(&p.ObjectMeta, &old.ObjectMeta)
			},
			Validate: func(obj, _ *admissionv1.ValidatingAdmissionPolicy) field.ErrorList {
				return validatePolicyStatus(&obj.Status, field.NewPath("status"))
			},
			ResetFields: []string{"metadata"},
		},
	}.Strategy()
}

// ValidatingAdmissionPolicyColumns is their Table form.
var ValidatingAdmissionPolicyColumns = columns.Of(
	func(p *admissionv1.ValidatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Validations)), paramKindCell(p.Spec.ParamKind), columns.Since(p.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Number("Validations", "Validations indicates the number of validation rules defined in this configuration"),
	columns.Text("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy"),
	columns.Age(),
)

// unset is the cell for a field that a policy or binding does not have.
const unset = "<unset>"

func paramKindCell(k *admissionv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

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
	of       release.Version
	old      *admissionv1.ValidatingAdmissionPolicy // nil for a new one
	compiler *expr.Compiler
	stored   storedTexts
}

// storedTexts are the expressions that a policy had before, by field.
type storedTexts struct{ validations, messages, annotations map[string]bool }

func newPolicy(of release.Version, obj, old *admissionv1.ValidatingAdmissionPolicy) *policy {
	v := &policy{ValidatingAdmissionPolicy: obj, old: old, of: of, compiler: expr.NewCompiler(of), stored: textsOf(old)}
	if len(v.Spec.Variables) > 0 {
		v.compiler = expr.NewComposer(of)
	}
	return v
}

// offer lists the variables of its expressions.
func (v *policy) offer() expr.Offer {
	return expr.Offer{Params: v.Spec.ParamKind != nil, Authorizer: true}
}

func (v *policy) validate() field.ErrorList {
	s, p := &v.Spec, field.NewPath("spec")
	if expr.TooLong(validatingTexts(s)) && (v.old == nil || !expr.TooLong(validatingTexts(&v.old.Spec))) {
		return field.ErrorList{field.Forbidden(p, expr.LongDetail())} // before any of them is compiled
	}
	errs := validateFailurePolicy(s.FailurePolicy, p.Child("failurePolicy"))
	errs = append(errs, rules.OptionalPtr(s.ParamKind, p.Child("paramKind"), validateParamKind)...)
	errs = append(errs, validateConstraints(s.MatchConstraints, p.Child("matchConstraints"))...)
	if v.old == nil || !reflect.DeepEqual(s.ParamKind, v.old.Spec.ParamKind) || !reflect.DeepEqual(s.MatchConditions, v.old.Spec.MatchConditions) {
		var stored map[string]bool
		if v.old != nil {
			stored = texts(nil, v.old.Spec.MatchConditions)
		}
		errs = append(errs, validateMatchConditions(expr.NewCompiler(v.of), s.MatchConditions, v.offer(), stored, p.Child("matchConditions"))...)
	}
	variable := func(text string) expr.Source { return v.source(text, nil, v.stored.validations) }
	errs = append(errs, validateVariables(s.Variables, v.compiler, variable, p.Child("variables"))...)
	if len(s.Validations) == 0 && len(s.AuditAnnotations) == 0 {
		const none = "validations or auditAnnotations must contain at least one item"
		return append(errs, field.Required(p.Child("validations"), none), field.Required(p.Child("auditAnnotations"), none))
	}
	errs = append(errs, rules.EachPtr(s.Validations, p.Child("validations"), v.validation)...)
	return append(errs, v.annotations(p.Child("auditAnnotations"))...)
}

func validateFailurePolicy(f *admissionv1.FailurePolicyType, p *field.Path) field.ErrorList {
	if f == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	return rules.OneOf(*f, p, admissionv1.Fail, admissionv1.Ignore)
}

// validateConstraints checks the match constraints of a policy, which are required.
func validateConstraints(m *admissionv1.MatchResources, p *field.Path) field.ErrorList {
	if m == nil {
		return field.ErrorList{field.Required(p, "")}
	}
	errs := validateMatchResources(m, p)
	return rules.RequiredIf(errs, len(m.ResourceRules) == 0, p.Child("resourceRules"), "")
}

func textsOf(old *admissionv1.ValidatingAdmissionPolicy) (s storedTexts) {
	if old == nil {
		return s
	}
	s = storedTexts{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for i := range old.Spec.Validations {
		s.validations[old.Spec.Validations[i].Expression] = true
		s.messages[old.Spec.Validations[i].MessageExpression] = true
	}
	for i := range old.Spec.AuditAnnotations {
		s.annotations[old.Spec.AuditAnnotations[i].ValueExpression] = true
	}
	return s
}

// source returns an expression with all that the policy offers; stored are those that an older policy
// had at the same place.
func (v *policy) source(text string, gives []*cel.Type, stored map[string]bool) expr.Source {
	return expr.Source{Text: text, Offer: v.offer(), Gives: gives, Stored: stored[text]}
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

// validateVariables checks the variables of a policy, and declares each for the expressions after it.
func validateVariables(list []admissionv1.Variable, compiler *expr.Compiler, source func(text string) expr.Source, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, x := range rules.Until(&errs, list) {
		switch name := p.Index(i).Child("name"); {
		case strings.TrimSpace(x.Name) == "":
			errs = append(errs, field.Required(name, "name is not specified"))
		case !identifier.MatchString(x.Name) || slices.Contains(reserved, x.Name):
			errs = append(errs, field.Invalid(name, x.Name, "must be a valid CEL identifier"))
		}
		if strings.TrimSpace(x.Expression) == "" {
			errs = append(errs, field.Required(p.Index(i).Child("expression"), "expression is not specified"))
			continue
		}
		declared := compiler.Declare(x.Name, source(x.Expression))
		errs = append(errs, faulty(declared, x.Expression, p.Index(i).Child("expression"))...)
	}
	return errs
}

func (v *policy) validation(x *admissionv1.Validation, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(x.Expression) == "" {
		errs = append(errs, field.Required(p.Child("expression"), "expression is not specified"))
	} else {
		errs = append(errs, faulty(v.compiler.Compile(v.source(x.Expression, expr.Bool, v.stored.validations)), x.Expression, p.Child("expression"))...)
	}
	if x.MessageExpression != "" {
		at := p.Child("messageExpression")
		if strings.TrimSpace(x.MessageExpression) == "" {
			errs = append(errs, field.Invalid(at, x.MessageExpression, "must be non-empty if specified"))
		} else {
			message := v.source(x.MessageExpression, expr.String, v.stored.messages)
			message.Offer.Authorizer = false
			errs = append(errs, faulty(v.compiler.Compile(message), x.MessageExpression, at)...)
		}
	}
	switch message := strings.TrimSpace(x.Message); {
	case x.Message != "" && message == "":
		errs = append(errs, field.Invalid(p.Child("message"), x.Message, "must be non-empty if specified"))
	case strings.ContainsAny(message, "\r\n"):
		errs = append(errs, field.Invalid(p.Child("message"), x.Message, "must not contain line breaks"))
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
	for i, a := range rules.Until(&errs, list) {
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
			compiled := v.source(a.ValueExpression, expr.StringOrNull, v.stored.annotations)
			compiled.Text = text
			errs = append(errs, faulty(v.compiler.Compile(compiled), a.ValueExpression, value)...)
		}
		errs = rules.DuplicateIf(errs, seen[a.Key], key, a.Key)
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

// validateFieldRef checks the path of a field that a warning is about.
func validateFieldRef(ref string, p *field.Path) field.ErrorList {
	if ref == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	if _, err := jsonpath.Parse(ref); err != nil {
		return field.ErrorList{field.Invalid(p, ref, fmt.Sprintf("invalid JSONPath: %v", err))}
	}
	return nil
}

func validatePolicyStatus(s *admissionv1.ValidatingAdmissionPolicyStatus, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.TypeChecking != nil {
		for i, w := range rules.Until(&errs, s.TypeChecking.ExpressionWarnings) {
			at := p.Child("typeChecking", "expressionWarnings").Index(i)
			errs = rules.RequiredIf(errs, w.Warning == "", at.Child("warning"), "")
			errs = append(errs, validateFieldRef(strings.TrimSpace(w.FieldRef), at.Child("fieldRef"))...)
		}
	}
	return append(errs, rules.Conditions(s.Conditions, p.Child("conditions"))...)
}
