// Package certificates holds the admission plugins of CertificateSigningRequests: they decide who may approve
// and sign a request, and which subjects a request may name.
//
// Approving or signing a request takes permission for its signer.
package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
)

const (
	group  = "certificates.k8s.io"
	plural = "certificatesigningrequests"
)

// SubjectRestriction refuses requests whose certificate would make its holder a cluster administrator.
func SubjectRestriction() admission.Validator {
	return check("CertificateSubjectRestriction", admission.Create, "", func(_ context.Context, a *admission.Attributes, r, _ *certificatesv1.CertificateSigningRequest) error {
		if r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
			return nil
		}
		request, err := Parse(r.Spec.Request)
		if err != nil {
			return a.Forbid(fmt.Errorf("unable to parse CSR: %w", err))
		}
		if slices.Contains(request.Subject.Organization, authx.GroupMasters) {
			return a.Forbid(fmt.Errorf("use of %s signer with %s group is not allowed", r.Spec.SignerName, authx.GroupMasters))
		}
		return nil
	})
}

// check returns a plugin of CertificateSigningRequests.
func check(plugin string, op admission.Operation, sub string, refuse func(ctx context.Context, a *admission.Attributes, r, old *certificatesv1.CertificateSigningRequest) error) admission.Validator {
	return admission.Check[*certificatesv1.CertificateSigningRequest]{
		Writes: admission.Writes{Plugin: plugin, Operations: []admission.Operation{op}, Group: group, Plural: plural, Subresource: sub},
		Refuse: refuse,
	}
}

// Parse reads the PEM text of a request for a certificate.
func Parse(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}

// Approval requires the right to approve for the signer.
func Approval(z authx.Authorizer) admission.Validator {
	return check("CertificateApproval", admission.Update, "approval", func(ctx context.Context, a *admission.Attributes, r, _ *certificatesv1.CertificateSigningRequest) error {
		if may(ctx, z, a.User, "approve", r.Spec.SignerName) {
			return nil
		}
		return a.Forbid(fmt.Errorf("user not permitted to approve requests with signerName %q", r.Spec.SignerName))
	})
}

// Signing requires the right to sign for the signer from users that set certificates and conditions.
func Signing(z authx.Authorizer) admission.Validator {
	return check("CertificateSigning", admission.Update, "status", func(ctx context.Context, a *admission.Attributes, r, old *certificatesv1.CertificateSigningRequest) error {
		if old == nil || bytes.Equal(r.Status.Certificate, old.Status.Certificate) && equality.Semantic.DeepEqual(r.Status.Conditions, old.Status.Conditions) {
			return nil
		}
		if may(ctx, z, a.User, "sign", old.Spec.SignerName) {
			return nil
		}
		return a.Forbid(fmt.Errorf("user not permitted to sign requests with signerName %q", old.Spec.SignerName))
	})
}

// may checks the signer by name, then all signers of its domain. A
// question that cannot be answered is a no.
func may(ctx context.Context, z authx.Authorizer, user *authx.Identity, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		d, _, err := z.Authorize(ctx, &authx.Attributes{
			User: user, Verb: verb, Name: name, APIGroup: group, APIVersion: "*", Resource: "signers", ResourceRequest: true,
		})
		if err == nil && d == authx.Allow {
			return true
		}
	}
	return false
}
