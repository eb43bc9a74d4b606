package builtin

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/certificates"
)

func (c Config) certificatesV1() []*kinds.Resource {
	return rows("certificates.k8s.io", "v1",
		&kinds.Resource{
			Plural: "certificatesigningrequests", Kind: "CertificateSigningRequest", ShortNames: []string{"csr"},
			New: object[certificatesv1.CertificateSigningRequest](), NewList: list[certificatesv1.CertificateSigningRequestList](),
			Storage: &kinds.Storage{Strategy: certificates.CertificateSigningRequest(c.Feature), Fields: certificates.CertificateSigningRequestFields}, Columns: certificates.CertificateSigningRequestColumns,
			Subresources: []kinds.Subresource{noTable(part("approval", "CertificateSigningRequest", certificates.CertificateSigningRequestApproval(c.Feature))), status()},
		},
	)
}

// certificatesBetas are PodCertificateRequests, and ClusterTrustBundles in their two versions, of which v1alpha1 is stored.
func certificatesBetas() []*kinds.Resource {
	alpha := rows("certificates.k8s.io", "v1alpha1",
		&kinds.Resource{
			Plural: "clustertrustbundles", Kind: "ClusterTrustBundle", Gate: "ClusterTrustBundle",
			New: object[certificatesv1beta1.ClusterTrustBundle](), NewList: list[certificatesv1beta1.ClusterTrustBundleList](),
			Storage: &kinds.Storage{Strategy: certificates.ClusterTrustBundle, Fields: certificates.ClusterTrustBundleFields}, Columns: certificates.ClusterTrustBundleColumns,
		},
	)
	beta := rows("certificates.k8s.io", "v1beta1",
		again(alpha[0], "v1beta1"),
		&kinds.Resource{
			Plural: "podcertificaterequests", Kind: "PodCertificateRequest", Namespaced: true, Gate: "PodCertificateRequest",
			New: object[certificatesv1beta1.PodCertificateRequest](), NewList: list[certificatesv1beta1.PodCertificateRequestList](),
			Storage: &kinds.Storage{Strategy: certificates.PodCertificateRequest, Fields: certificates.PodCertificateRequestFields}, Columns: certificates.PodCertificateRequestColumns,
			Subresources: []kinds.Subresource{status()},
		},
	)
	return append(beta, alpha...)
}
