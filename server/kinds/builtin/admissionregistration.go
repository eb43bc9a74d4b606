package builtin

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/admissionregistration"
	"github.com/rowlock/rowlock/server/release"
)

// admissionregistrationGroup serves policies that refuse in two versions and policies that change objects in three. The
// versions of each are the same but for the name; those that change are stored in v1alpha1.
func admissionregistrationGroup(of release.Version) []*kinds.Resource {
	v1, alpha := admissionregistrationV1(of), admissionregistrationV1alpha1(of)
	beta := []*kinds.Resource{again(v1[1], "v1beta1"), again(v1[2], "v1beta1"), again(alpha[0], "v1beta1"), again(alpha[1], "v1beta1")}
	v1 = append(v1, again(alpha[0], "v1"), again(alpha[1], "v1"))
	alpha[1].Default = admissionregistration.DefaultAlphaBinding
	return slices.Concat(byName(v1), byName(beta), alpha)
}

func admissionregistrationV1(of release.Version) []*kinds.Resource {
	return rows("admissionregistration.k8s.io", "v1",
		&kinds.Resource{
			Plural: "mutatingwebhookconfigurations", Kind: "MutatingWebhookConfiguration", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.MutatingWebhookConfiguration](), NewList: list[admissionregistrationv1.MutatingWebhookConfigurationList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.MutatingWebhookConfiguration(of)}, Columns: admissionregistration.MutatingWebhookConfigurationColumns,
		},
		&kinds.Resource{
			Plural: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingAdmissionPolicy](), NewList: list[admissionregistrationv1.ValidatingAdmissionPolicyList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.ValidatingAdmissionPolicy(of)}, Columns: admissionregistration.ValidatingAdmissionPolicyColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "validatingadmissionpolicybindings", Kind: "ValidatingAdmissionPolicyBinding", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingAdmissionPolicyBinding](), NewList: list[admissionregistrationv1.ValidatingAdmissionPolicyBindingList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.ValidatingAdmissionPolicyBinding}, Columns: admissionregistration.ValidatingAdmissionPolicyBindingColumns,
		},
		&kinds.Resource{
			Plural: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingWebhookConfiguration](), NewList: list[admissionregistrationv1.ValidatingWebhookConfigurationList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.ValidatingWebhookConfiguration(of)}, Columns: admissionregistration.ValidatingWebhookConfigurationColumns,
		},
	)
}

func admissionregistrationV1alpha1(of release.Version) []*kinds.Resource {
	return rows("admissionregistration.k8s.io", "v1alpha1",
		&kinds.Resource{
			Plural: "mutatingadmissionpolicies", Kind: "MutatingAdmissionPolicy", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.MutatingAdmissionPolicy](), NewList: list[admissionregistrationv1.MutatingAdmissionPolicyList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.MutatingAdmissionPolicy(of)}, Columns: admissionregistration.MutatingAdmissionPolicyColumns,
		},
		&kinds.Resource{
			Plural: "mutatingadmissionpolicybindings", Kind: "MutatingAdmissionPolicyBinding", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.MutatingAdmissionPolicyBinding](), NewList: list[admissionregistrationv1.MutatingAdmissionPolicyBindingList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.MutatingAdmissionPolicyBinding}, Columns: admissionregistration.MutatingAdmissionPolicyBindingColumns,
		},
	)
}
