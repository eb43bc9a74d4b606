package definitions

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// definition is a decoded definition.
type definition struct {
	crd     *apiextensionsv1.CustomResourceDefinition // without schemas; not to be changed
	created int64                                     // revision
}

// names are the names in use in a group, and how often each is.
type names struct{ resources, kinds map[string]int }

// acceptedNames collects the accepted names of all definitions of a list.
func acceptedNames(list []*definition) names {
	n := names{map[string]int{}, map[string]int{}}
	for _, one := range list {
		n.add(one.crd, 1)
	}
	return n
}

// add counts the accepted names of a definition, or with -1 takes them back.
func (n names) add(crd *apiextensionsv1.CustomResourceDefinition, by int) {
	accepted := &crd.Status.AcceptedNames
	n.resources[accepted.Plural] += by
	n.resources[accepted.Singular] += by
	for _, short := range accepted.ShortNames {
		n.resources[short] += by
	}
	n.kinds[accepted.Kind] += by
	n.kinds[accepted.ListKind] += by
}

// claim returns why a name is not available: which definition has it.
func claim(name, held string, taken map[string]int) error {
	if name != held && taken[name] > 0 {
		return fmt.Errorf("%q is already in use", name)
	}
	return nil
}

// acceptNames accepts the names in the spec of crd, as far as no other definition of its
// group has them, and establishes it once it has all. all are the names in use in the group.
func acceptNames(crd *apiextensionsv1.CustomResourceDefinition, all names) {
	if equality.Semantic.DeepEqual(crd.Spec.Names, crd.Status.AcceptedNames) && apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) &&
		apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.NamesAccepted) {
		return
	}
	requested, accepted := &crd.Spec.Names, &crd.Status.AcceptedNames
	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue, Reason: "NoConflicts", Message: "no conflicts found",
	}
	refuse := func(reason string, err error) bool {
		if err != nil {
			condition.Status, condition.Reason, condition.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
		}
		return err != nil
	}
	for _, n := range []struct {
		reason, requested string
		accepted          *string
		taken             map[string]int
	}{
		{"PluralConflict", requested.Plural, &accepted.Plural, all.resources},
		{"SingularConflict", requested.Singular, &accepted.Singular, all.resources},
	} {
		if !refuse(n.reason, claim(n.requested, *n.accepted, n.taken)) {
			*n.accepted = n.requested
		}
	}
	if !equality.Semantic.DeepEqual(requested.ShortNames, accepted.ShortNames) {
		var errs []error
		had := rules.In(accepted.ShortNames)
		for _, short := range requested.ShortNames {
			if had.Has(short) {
				continue
			}
			if err := claim(short, "", all.resources); err != nil {
				errs = append(errs, err)
			}
		}
		if !refuse("ShortNamesConflict", rules.Aggregate(errs)) {
			accepted.ShortNames = requested.ShortNames
		}
	}
	if !refuse("KindConflict", claim(requested.Kind, accepted.Kind, all.kinds)) {
		accepted.Kind = requested.Kind
	}
	if !refuse("ListKindConflict", claim(requested.ListKind, accepted.ListKind, all.kinds)) {
		accepted.ListKind = requested.ListKind
	}
	accepted.Categories = requested.Categories
	apihelpers.SetCRDCondition(crd, condition)
	establish(crd, condition.Status == apiextensionsv1.ConditionTrue)
}

// refuseNames refuses the names of built-in resources. Such a definition is not established, even if it was
// before: no objects are stored by it, and so its deletion removes none.
func refuseNames(crd *apiextensionsv1.CustomResourceDefinition) {
	crd.Status.AcceptedNames = apiextensionsv1.CustomResourceDefinitionNames{}
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionFalse, Reason: "PluralConflict",
		Message: fmt.Sprintf("%q is already in use", crd.Spec.Names.Plural),
	})
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
		Reason: "NotAccepted", Message: "not all names are accepted",
	})
}

// establish decides whether a definition is served. Once it is, it stays so, whatever names it requests
// later.
func establish(crd *apiextensionsv1.CustomResourceDefinition, accepted bool) {
	old := apihelpers.FindCRDCondition(crd, apiextensionsv1.Established)
	switch {
	case old != nil && old.Status == apiextensionsv1.ConditionTrue:
	case accepted && badBundle(crd):
		apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "InvalidCABundle", Message: "The conversion webhook CABundle is invalid",
		})
	case accepted:
		apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
			Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
		})
	case old == nil:
		apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "NotAccepted", Message: "not all names are accepted",
		})
	}
}

// badBundle reports whether the caBundle of the conversion webhook has no valid certificate.
func badBundle(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil || len(c.Webhook.ClientConfig.CABundle) == 0 {
		return false
	}
	return rules.CABundle(c.Webhook.ClientConfig.CABundle) != nil
}

// approve sets the condition that shows whether a definition in a community-owned group has the approval annotation.
func approve(crd *apiextensionsv1.CustomResourceDefinition) {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return
	}
	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse,
	}
	var state apihelpers.APIApprovalState
	switch state, condition.Message = apihelpers.GetAPIApprovalState(crd.Annotations); state {
	case apihelpers.APIApproved:
		condition.Status, condition.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		condition.Reason = "UnapprovedAnnotation"
	case apihelpers.APIApprovalMissing:
		condition.Reason = "MissingAnnotation"
	default:
		condition.Reason = "InvalidAnnotation"
	}
	apihelpers.SetCRDCondition(crd, condition)
}
