package builtin

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/admissionregistration"
	"github.com/rowlock/rowlock/server/release"
)

// admissionregistrationGroup serves policies that refuse in two versions and policies that change objects in three. The
// versions of each are the same but for the name; those that change are stored in v1alpha1.
func admissionregistrationGroup(of release.Version) []*kinds.Resource {
	policies := &kinds.Storage{Strategy: admissionregistration.ValidatingAdmissionPolicy(of)}
	bindings := &kinds.Storage{Strategy: admissionregistration.ValidatingAdmissionPolicyBinding}
	alpha := admissionregistrationV1alpha1(of)
	v1 := append(admissionregistrationV1(of, policies, bindings),
		again(alpha[0], "v1", object[admissionregistrationv1.MutatingAdmissionPolicy](), list[admissionregistrationv1.MutatingAdmissionPolicyList]()),
		again(alpha[1], "v1", object[admissionregistrationv1.MutatingAdmissionPolicyBinding](), list[admissionregistrationv1.MutatingAdmissionPolicyBindingList]()),
	)
	beta := append(admissionregistrationV1beta1(policies, bindings),
		again(alpha[0], "v1beta1", object[admissionregistrationv1beta1.MutatingAdmissionPolicy](), list[admissionregistrationv1beta1.MutatingAdmissionPolicyList]()),
		again(alpha[1], "v1beta1", object[admissionregistrationv1beta1.MutatingAdmissionPolicyBinding](), list[admissionregistrationv1beta1.MutatingAdmissionPolicyBindingList]()),
	)
	alpha[1].Default = admissionregistration.DefaultAlphaBinding
	return slices.Concat(byName(v1), byName(beta), alpha)
}

func admissionregistrationV1(of release.Version, policies, bindings *kinds.Storage) []*kinds.Resource {
	return rows("admissionregistration.k8s.io", "v1",
		&kinds.Resource{
			Plural: "mutatingwebhookconfigurations", Kind: "MutatingWebhookConfiguration", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.MutatingWebhookConfiguration](), NewList: list[admissionregistrationv1.MutatingWebhookConfigurationList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.MutatingWebhookConfiguration(of)}, Columns: admissionregistration.MutatingWebhookConfigurationColumns,
		},
		&kinds.Resource{
			Plural: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingAdmissionPolicy](), NewList: list[admissionregistrationv1.ValidatingAdmissionPolicyList](),
			Storage: policies, Columns: admissionregistration.ValidatingAdmissionPolicyColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "validatingadmissionpolicybindings", Kind: "ValidatingAdmissionPolicyBinding", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingAdmissionPolicyBinding](), NewList: list[admissionregistrationv1.ValidatingAdmissionPolicyBindingList](),
			Storage: bindings, Columns: admissionregistration.ValidatingAdmissionPolicyBindingColumns,
		},
		&kinds.Resource{
			Plural: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingWebhookConfiguration](), NewList: list[admissionregistrationv1.ValidatingWebhookConfigurationList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.ValidatingWebhookConfiguration(of)}, Columns: admissionregistration.ValidatingWebhookConfigurationColumns,
		},
	)
}

func admissionregistrationV1beta1(policies, bindings *kinds.Storage) []*kinds.Resource {
	resources := rows("admissionregistration.k8s.io", "v1beta1",
		&kinds.Resource{
			Plural: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1beta1.ValidatingAdmissionPolicy](), NewList: list[admissionregistrationv1beta1.ValidatingAdmissionPolicyList](),
			Storage: policies, Columns: admissionregistration.ValidatingAdmissionPolicyColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "validatingadmissionpolicybindings", Kind: "ValidatingAdmissionPolicyBinding", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1beta1.ValidatingAdmissionPolicyBinding](), NewList: list[admissionregistrationv1beta1.ValidatingAdmissionPolicyBindingList](),
			Storage: bindings, Columns: admissionregistration.ValidatingAdmissionPolicyBindingColumns,
		},
	)
	stored := []func() kinds.Object{object[admissionregistrationv1.ValidatingAdmissionPolicy](), object[admissionregistrationv1.ValidatingAdmissionPolicyBinding]()}
	for i, r := range resources {
		r.ToStorage, r.FromStorage = kinds.Conversion(r.New, stored[i], nil)
	}
	return resources
}

func admissionregistrationV1alpha1(of release.Version) []*kinds.Resource {
	return rows("admissionregistration.k8s.io", "v1alpha1",
		&kinds.Resource{
			Plural: "mutatingadmissionpolicies", Kind: "MutatingAdmissionPolicy", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1alpha1.MutatingAdmissionPolicy](), NewList: list[admissionregistrationv1alpha1.MutatingAdmissionPolicyList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.MutatingAdmissionPolicy(of)}, Columns: admissionregistration.MutatingAdmissionPolicyColumns,
		},
		&kinds.Resource{
			Plural: "mutatingadmissionpolicybindings", Kind: "MutatingAdmissionPolicyBinding", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1alpha1.MutatingAdmissionPolicyBinding](), NewList: list[admissionregistrationv1alpha1.MutatingAdmissionPolicyBindingList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.MutatingAdmissionPolicyBinding}, Columns: admissionregistration.MutatingAdmissionPolicyBindingColumns,
		},
	)
}
