package builtin

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/admissionregistration"
)

func admissionregistrationV1() []*kinds.Resource {
	return rows("admissionregistration.k8s.io", "v1",
		&kinds.Resource{
			Plural: "mutatingwebhookconfigurations", Kind: "MutatingWebhookConfiguration", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.MutatingWebhookConfiguration](), NewList: list[admissionregistrationv1.MutatingWebhookConfigurationList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.MutatingWebhookConfiguration}, Columns: admissionregistration.MutatingWebhookConfigurationColumns,
		},
		&kinds.Resource{
			Plural: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingAdmissionPolicy](), NewList: list[admissionregistrationv1.ValidatingAdmissionPolicyList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.ValidatingAdmissionPolicy}, Columns: admissionregistration.ValidatingAdmissionPolicyColumns,
			Subresources: []kinds.Subresource{status("ValidatingAdmissionPolicy", admissionregistration.ValidatingAdmissionPolicyStatus)},
		},
		&kinds.Resource{
			Plural: "validatingadmissionpolicybindings", Kind: "ValidatingAdmissionPolicyBinding", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingAdmissionPolicyBinding](), NewList: list[admissionregistrationv1.ValidatingAdmissionPolicyBindingList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.ValidatingAdmissionPolicyBinding}, Columns: admissionregistration.ValidatingAdmissionPolicyBindingColumns,
		},
		&kinds.Resource{
			Plural: "validatingwebhookconfigurations", Kind: "ValidatingWebhookConfiguration", Categories: []string{"api-extensions"},
			New: object[admissionregistrationv1.ValidatingWebhookConfiguration](), NewList: list[admissionregistrationv1.ValidatingWebhookConfigurationList](),
			Storage: &kinds.Storage{Strategy: admissionregistration.ValidatingWebhookConfiguration}, Columns: admissionregistration.ValidatingWebhookConfigurationColumns,
		},
	)
}
