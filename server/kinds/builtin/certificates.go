package builtin

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/certificates"
)

func certificatesV1() []*kinds.Resource {
	return rows("certificates.k8s.io", "v1",
		&kinds.Resource{
			Plural: "certificatesigningrequests", Kind: "CertificateSigningRequest", ShortNames: []string{"csr"},
			New: object[certificatesv1.CertificateSigningRequest](), NewList: list[certificatesv1.CertificateSigningRequestList](),
			Storage: &kinds.Storage{Strategy: certificates.CertificateSigningRequest, Fields: certificates.CertificateSigningRequestFields}, Columns: certificates.CertificateSigningRequestColumns,
			Subresources: []kinds.Subresource{noTable(part("approval", "CertificateSigningRequest", certificates.CertificateSigningRequestApproval)), status()},
		},
	)
}

func certificatesV1alpha1() []*kinds.Resource {
	return rows("certificates.k8s.io", "v1alpha1",
		&kinds.Resource{
			Plural: "clustertrustbundles", Kind: "ClusterTrustBundle", Gate: "ClusterTrustBundle",
			New: object[certificatesv1alpha1.ClusterTrustBundle](), NewList: list[certificatesv1alpha1.ClusterTrustBundleList](),
			Storage: &kinds.Storage{Strategy: certificates.ClusterTrustBundle, Fields: certificates.ClusterTrustBundleFields}, Columns: certificates.ClusterTrustBundleColumns,
		},
	)
}
