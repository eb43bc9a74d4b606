package builtin

import (
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

func certificatesV1() []*kinds.Resource {
	return rows("certificates.k8s.io", "v1",
		&kinds.Resource{
			Plural: "certificatesigningrequests", Kind: "CertificateSigningRequest", ShortNames: []string{"csr"},
			New: object[certificatesv1.CertificateSigningRequest](), NewList: list[certificatesv1.CertificateSigningRequestList](),
			Storage:      &kinds.Storage{},
			Subresources: []kinds.Subresource{part("approval", "CertificateSigningRequest", kinds.Strategy{}), status("CertificateSigningRequest", kinds.Strategy{})},
		},
	)
}
