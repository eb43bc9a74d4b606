package apiextensions

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// validateDefinition checks a new definition.
func validateDefinition(ctx context.Context, of release.Version, d *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	in, err := inward(d)
	if err != nil {
		return broken(err)
	}
	want := in.Spec.Names.Plural + "." + in.Spec.Group
	errs := apivalidation.ValidateObjectMetaAccessor(rules.Metadata(in), false, func(name string, prefix bool) []string {
		faults := apivalidation.NameIsDNSSubdomain(name, prefix)
		if name != want {
			faults = append(faults, `must be spec.names.plural+"."+spec.group`)
		}
		return faults
	}, field.NewPath("metadata"))
	// Until it is established a definition may have anything for a bundle.
	return append(errs, validateWhole(ctx, in, nil, tolerance{badBundle: true, texts: textsOf(d, in), release: of})...)
}

// validateDefinitionUpdate checks a definition that replaces another one.
func validateDefinitionUpdate(ctx context.Context, of release.Version, d, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	in, err := inward(d)
	if err != nil {
		return broken(err)
	}
	was, err := inward(old)
	if err != nil {
		return broken(err)
	}
	t := tolerated(in, was)
	t.texts, t.release = textsOf(d, in), of
	return validateWhole(ctx, in, was, t)
}

// validateDefinitionStatus checks a status that is written.
func validateDefinitionStatus(d *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	// The spec is that of the stored definition, and was checked with it.
	accepted := apiext.CustomResourceDefinitionNames{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinitionNames_To_apiextensions_CustomResourceDefinitionNames(&d.Status.AcceptedNames, &accepted, nil); err != nil {
		return broken(err)
	}
	return validateNames(&accepted, field.NewPath("status", "acceptedNames"))
}

func broken(err error) field.ErrorList {
	return field.ErrorList{field.InternalError(field.NewPath("spec"), err)}
}

// validateWhole checks all of a definition but its metadata; old is nil for a new one.
func validateWhole(ctx context.Context, d, old *apiext.CustomResourceDefinition, t tolerance) field.ErrorList {
	spec, status := field.NewPath("spec"), field.NewPath("status")
	if errs := append(validatePatterns(d, old, spec), validateTexts(d, old, spec)...); len(errs) > 0 {
		return errs // before any of them is compiled
	}
	errs := validateSpec(ctx, &d.Spec, t, spec)
	if old != nil {
		errs = append(errs, validateUnchanged(d, old, spec)...)
	}
	errs = append(errs, validateNames(&d.Status.AcceptedNames, status.Child("acceptedNames"))...)
	errs = append(errs, validateStoredVersions(d, status.Child("storedVersions"))...)
	errs = append(errs, validateApproval(d, old)...)
	keeps := func(d *apiext.CustomResourceDefinition) bool {
		return d != nil && d.Spec.PreserveUnknownFields != nil && *d.Spec.PreserveUnknownFields
	}
	if keeps(d) && !keeps(old) {
		errs = append(errs, field.Invalid(spec.Child("preserveUnknownFields"), d.Spec.PreserveUnknownFields,
			"cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
	}
	return errs
}

// validateUnchanged keeps the names of stored objects and, once such objects can exist, their scope and kind.
func validateUnchanged(d, old *apiext.CustomResourceDefinition, p *field.Path) (errs field.ErrorList) {
	names := p.Child("names")
	if apiext.IsCRDConditionTrue(old, apiext.Established) {
		errs = append(errs, apivalidation.ValidateImmutableField(d.Spec.Scope, old.Spec.Scope, p.Child("scope"))...)
		errs = append(errs, apivalidation.ValidateImmutableField(d.Spec.Names.Kind, old.Spec.Names.Kind, names.Child("kind"))...)
	}
	errs = append(errs, apivalidation.ValidateImmutableField(d.Spec.Group, old.Spec.Group, p.Child("group"))...)
	return append(errs, apivalidation.ValidateImmutableField(d.Spec.Names.Plural, old.Spec.Names.Plural, names.Child("plural"))...)
}

// validateStoredVersions checks that versions in which objects may be stored exist.
func validateStoredVersions(d *apiext.CustomResourceDefinition, p *field.Path) (errs field.ErrorList) {
	stored := d.Status.StoredVersions
	if len(stored) == 0 {
		return field.ErrorList{field.Invalid(p, stored, "must have at least one stored version")}
	}
	left := make(map[string]int, len(stored))
	for i, v := range stored {
		left[v] = i
	}
	for _, v := range d.Spec.Versions {
		_, ok := left[v.Name]
		if v.Storage && !ok { // or it was there for a version of the same name
			errs = append(errs, field.Invalid(p, stored, "must have the storage version "+v.Name))
		}
		delete(left, v.Name)
	}
	for i, v := range rules.Until(&errs, stored) {
		if at, ok := left[v]; ok && at == i {
			errs = append(errs, field.Invalid(p.Index(i), v, fmt.Sprintf("missing from spec.versions; %[1]s was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]s and removes %[1]s from status.storedVersions", v)))
		}
	}
	return errs
}

// validateApproval requires the approval of the owners of the project's groups, unless it has not changed.
func validateApproval(d, old *apiext.CustomResourceDefinition) field.ErrorList {
	if !apihelpers.IsProtectedCommunityGroup(d.Spec.Group) {
		return nil
	}
	state, reason := apihelpers.GetAPIApprovalState(d.Annotations)
	if old != nil {
		if before, _ := apihelpers.GetAPIApprovalState(old.Annotations); before == state {
			return nil
		}
	}
	p := field.NewPath("metadata", "annotations").Key(apiextensionsv1.KubeAPIApprovedAnnotation)
	switch state {
	case apihelpers.APIApproved, apihelpers.APIApprovalBypassed:
		return nil
	case apihelpers.APIApprovalMissing:
		return field.ErrorList{field.Required(p, reason)}
	default:
		return field.ErrorList{field.Invalid(p, d.Annotations[apiextensionsv1.KubeAPIApprovedAnnotation], reason)}
	}
}
