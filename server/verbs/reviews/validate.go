package reviews

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

func validateSubject(s *authorizationv1.SubjectAccessReviewSpec, m *metav1.ObjectMeta) field.ErrorList {
	return append(validateSpec(s), validateMeta(m, "must be empty")...)
}

func validateSpec(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	p := field.NewPath("spec")
	errs := validateEither(s.ResourceAttributes, s.NonResourceAttributes, p)
	if s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(p.Child("user"), s.User, "at least one of user or group must be specified"))
	}
	return append(errs, validateResource(s.ResourceAttributes, p.Child("resourceAttributes"))...)
}

func validateSelf(r *authorizationv1.SelfSubjectAccessReview) field.ErrorList {
	p := field.NewPath("spec")
	errs := validateEither(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, p)
	errs = append(errs, validateResource(r.Spec.ResourceAttributes, p.Child("resourceAttributes"))...)
	return append(errs, validateMeta(&r.ObjectMeta, "must be empty")...)
}

func validateLocal(r *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
	errs := append(validateSpec(&r.Spec), validateMeta(&r.ObjectMeta, "must be empty except for namespace")...)
	p := field.NewPath("spec")
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(p.Child("resourceAttributes", "namespace"), a.Namespace, "must match metadata.namespace"))
	}
	if r.Spec.NonResourceAttributes != nil {
		errs = append(errs, field.Invalid(p.Child("nonResourceAttributes"), rules.Shown(r.Spec.NonResourceAttributes), "disallowed on this kind of request"))
	}
	return errs
}

func validateEither(r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes, p *field.Path) field.ErrorList {
	switch {
	case r != nil && n != nil:
		return field.ErrorList{field.Invalid(p.Child("nonResourceAttributes"), rules.Shown(n), "cannot be specified in combination with resourceAttributes")}
	case r == nil && n == nil:
		return field.ErrorList{field.Invalid(p.Child("resourceAttributes"), n, "exactly one of nonResourceAttributes or resourceAttributes must be specified")}
	}
	return nil
}

// validateMeta allows only the metadata that the request implies.
func validateMeta(m *metav1.ObjectMeta, detail string) field.ErrorList {
	bare := *m
	bare.Namespace, bare.ManagedFields = "", nil
	if equality.Semantic.DeepEqual(bare, metav1.ObjectMeta{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), rules.Shown(m), detail)}
}

func validateResource(a *authorizationv1.ResourceAttributes, p *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if s := a.FieldSelector; s != nil {
		p := p.Child("fieldSelector")
		errs = append(errs, validateSelector(s.RawSelector, len(s.Requirements), p)...)
		errs = append(errs, rules.Each(s.Requirements, p.Child("requirements"), func(r metav1.FieldSelectorRequirement, at *field.Path) field.ErrorList {
			return validation.ValidateFieldSelectorRequirement(r, validation.FieldSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}, at)
		})...)
	}
	if s := a.LabelSelector; s != nil {
		p := p.Child("labelSelector")
		errs = append(errs, validateSelector(s.RawSelector, len(s.Requirements), p)...)
		o := validation.LabelSelectorValidationOptions{AllowUnknownOperatorInRequirement: true}
		errs = append(errs, rules.LabelRequirements(s.Requirements, o, p.Child("requirements"))...)
	}
	return errs
}

// maxRawSelector bounds the bytes of a selector that is parsed: its terms take up to a hundred times as much memory as its text, which no
// weight of the body counts.
const maxRawSelector = 16 << 10

func validateSelector(raw string, requirements int, p *field.Path) field.ErrorList {
	switch {
	case len(raw) > maxRawSelector:
		return field.ErrorList{field.TooLong(p.Child("rawSelector"), "", maxRawSelector)}
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(p.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{field.Required(p.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", p))}
	}
	return nil
}
