package admissionregistration

import (
	"reflect"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// MutatingAdmissionPolicy returns the strategy of MutatingAdmissionPolicies.
func MutatingAdmissionPolicy(of release.Version) kinds.Strategy {
	return kinds.Typed[*admissionv1.MutatingAdmissionPolicy]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &metaRules,
		Default: func(obj *admissionv1.MutatingAdmissionPolicy) {
			rules.DefaultTo(&obj.Spec.FailurePolicy, admissionv1.Fail)
			defaultMatch(obj.Spec.MatchConstraints)
		},
		Counted: func(p *admissionv1.MutatingAdmissionPolicy) []any { return []any{p.Spec} },
		Validate: func(p *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
			return newMutating(of, p, nil).validate()
		},
		ValidateUpdate: func(p, old *admissionv1.MutatingAdmissionPolicy) field.ErrorList {
			return newMutating(of, p, old).validate()
		},
	}.Strategy()
}

// MutatingAdmissionPolicyColumns is their Table form.
var MutatingAdmissionPolicyColumns = columns.Of(
	func(p *admissionv1.MutatingAdmissionPolicy, now time.Time) []any {
		return []any{p.Name, int64(len(p.Spec.Mutations)), paramKindCell((*admissionv1.ParamKind)(p.Spec.ParamKind)), columns.Since(p.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Number("Mutations", "Mutation indicates the number of mutations rules defined in this configuration"),
	columns.Text("ParamKind", "ParamKind specifies the kind of resources used to parameterize this policy"),
	columns.Age(),
)

// MutatingAdmissionPolicyBinding has the rules for MutatingAdmissionPolicyBindings.
var MutatingAdmissionPolicyBinding = kinds.Typed[*admissionv1.MutatingAdmissionPolicyBinding]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &metaRules,
	Default: func(obj *admissionv1.MutatingAdmissionPolicyBinding) {
		defaultMatch(obj.Spec.MatchResources)
	},
	Counted: func(b *admissionv1.MutatingAdmissionPolicyBinding) []any { return []any{b.Spec} },
	Validate: func(obj *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
		return validateMutatingBinding(&obj.Spec)
	},
	ValidateUpdate: func(obj, _ *admissionv1.MutatingAdmissionPolicyBinding) field.ErrorList {
		return validateMutatingBinding(&obj.Spec)
	},
}.Strategy()

// DefaultAlphaBinding sets the defaults of v1alpha1: there, requests without a parameter are denied by default.
func DefaultAlphaBinding(obj kinds.Object) {
	MutatingAdmissionPolicyBinding.Default(obj)
	if r := obj.(*admissionv1.MutatingAdmissionPolicyBinding).Spec.ParamRef; r != nil {
		rules.DefaultTo(&r.ParameterNotFoundAction, admissionv1.DenyAction)
	}
}

// MutatingAdmissionPolicyBindingColumns is their Table form.
var MutatingAdmissionPolicyBindingColumns = columns.Of(
	func(b *admissionv1.MutatingAdmissionPolicyBinding, now time.Time) []any {
		return []any{b.Name, b.Spec.PolicyName, paramRefCell(b.Spec.ParamRef), columns.Since(b.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("PolicyName", "PolicyName indicates the policy definition which the policy binding binded to"),
	columns.Text("ParamRef", "ParamRef indicates the param resource which sets the configration param"),
	columns.Age(),
)

// mutating is a mutating policy under validation, with the one it replaces.
type mutating struct {
	of       release.Version
	spec     *admissionv1.MutatingAdmissionPolicySpec
	old      *admissionv1.MutatingAdmissionPolicySpec // nil for a new one
	compiler *expr.Compiler

	variables, mutations map[string]bool // the expressions of old
}

func newMutating(of release.Version, obj, old *admissionv1.MutatingAdmissionPolicy) *mutating {
	v := &mutating{of: of, spec: &obj.Spec, compiler: expr.NewComposer(of)}
	if old != nil {
		v.old = &old.Spec
		v.variables, v.mutations = map[string]bool{}, map[string]bool{}
		for _, x := range v.old.Variables {
			v.variables[x.Expression] = true
		}
		for _, m := range v.old.Mutations {
			if m.ApplyConfiguration != nil {
				v.mutations[m.ApplyConfiguration.Expression] = true
			}
			if m.JSONPatch != nil {
				v.mutations[m.JSONPatch.Expression] = true
			}
		}
	}
	return v
}

// offer lists the variables of its expressions.
func (v *mutating) offer() expr.Offer {
	return expr.Offer{Params: v.spec.ParamKind != nil, Authorizer: true}
}

func (v *mutating) validate() field.ErrorList {
	s, p := v.spec, field.NewPath("spec")
	if expr.TooLong(mutatingTexts(s)) && (v.old == nil || !expr.TooLong(mutatingTexts(v.old))) {
		return field.ErrorList{field.Forbidden(p, expr.LongDetail())} // before any of them is compiled
	}
	errs := validateFailurePolicy(s.FailurePolicy, p.Child("failurePolicy"))
	if s.ParamKind != nil {
		errs = append(errs, validateParamKind(s.ParamKind, p.Child("paramKind"))...)
	}
	errs = append(errs, validateConstraints(s.MatchConstraints, p.Child("matchConstraints"))...)
	errs = append(errs, mutableOperations(s.MatchConstraints, p.Child("matchConstraints", "resourceRules", "operations"))...)
	if v.old == nil || !reflect.DeepEqual(s.ParamKind, v.old.ParamKind) || !reflect.DeepEqual(s.MatchConditions, v.old.MatchConditions) {
		var stored map[string]bool
		if v.old != nil {
			stored = texts(nil, v.old.MatchConditions)
		}
		errs = append(errs, validateMatchConditions(expr.NewCompiler(v.of), s.MatchConditions, v.offer(), stored, p.Child("matchConditions"))...)
	}
	errs = append(errs, validateVariables(s.Variables, v.compiler, v.variable, p.Child("variables"))...)
	errs = rules.RequiredIf(errs, len(s.Mutations) == 0, p.Child("mutations"), "mutations must contain at least one item")
	errs = append(errs, rules.EachPtr(s.Mutations, p.Child("mutations"), v.mutation)...)
	if s.ReinvocationPolicy == "" {
		return append(errs, field.Required(p.Child("reinvocationPolicy"), ""))
	}
	return append(errs, rules.OneOf(s.ReinvocationPolicy, p.Child("reinvocationPolicy"),
		admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy)...)
}

// mutableOperations refuses those that have no object to change. Clients of a stock server know
// the field without the places in its lists.
func mutableOperations(m *admissionv1.MatchResources, p *field.Path) field.ErrorList {
	if m == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range rules.Until(&errs, m.ResourceRules) {
		for _, o := range rules.Until(&errs, m.ResourceRules[i].Operations) {
			errs = append(errs, rules.OneOf(o, p, admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Update)...)
		}
	}
	return errs
}

// variable returns the expression of a variable.
func (v *mutating) variable(text string) expr.Source {
	return expr.Source{Text: text, Offer: v.offer(), Stored: v.variables[text]}
}

func (v *mutating) mutation(m *admissionv1.Mutation, p *field.Path) field.ErrorList {
	const must, mustNot = "must be specified when patchType is ", "must not be specified when patchType is "
	apply, patch := p.Child("applyConfiguration"), p.Child("jsonPatch")
	var errs field.ErrorList
	switch m.PatchType {
	case "":
		errs = append(errs, field.Required(p.Child("patchType"), ""))
	case admissionv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			errs = append(errs, field.Required(apply, must+string(m.PatchType)))
		} else {
			errs = append(errs, v.expression(m.ApplyConfiguration.Expression, expr.Configuration, apply.Child("expression"))...)
		}
		if m.JSONPatch != nil {
			errs = append(errs, field.Invalid(patch, "{jsonPatch}", mustNot+string(m.PatchType)))
		}
	case admissionv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			errs = append(errs, field.Required(patch, must+string(m.PatchType)))
		} else {
			errs = append(errs, v.expression(m.JSONPatch.Expression, expr.Patch, patch.Child("expression"))...)
		}
		if m.ApplyConfiguration != nil {
			errs = append(errs, field.Invalid(apply, "{applyConfiguration}", mustNot+string(m.PatchType)))
		}
	default:
		errs = append(errs, rules.OneOf(m.PatchType, p.Child("patchType"),
			admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch)...)
	}
	return errs
}

// expression checks the expression of a mutation. It is compiled, and shown, without the white space around
// it.
func (v *mutating) expression(text string, gives []*cel.Type, p *field.Path) field.ErrorList {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return field.ErrorList{field.Required(p, "")}
	}
	offer := v.offer()
	offer.Mutation = true
	return faulty(v.compiler.Compile(expr.Source{Text: trimmed, Offer: offer, Gives: gives, Stored: v.mutations[text]}), trimmed, p)
}

func validateMutatingBinding(s *admissionv1.MutatingAdmissionPolicyBindingSpec) field.ErrorList {
	p := field.NewPath("spec")
	errs := validateBound(s.PolicyName, s.ParamRef, s.MatchResources, p)
	return append(errs, mutableOperations(s.MatchResources, p.Child("matchResources", "resourceRules", "operations"))...)
}
