// Package certificates holds the admission plugins of CertificateSigningRequests: they
// decide who may approve and sign a request, and which subjects a request may name.
//
// It promises: approving or signing a request takes permission for its signer.
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

// SubjectRestriction refuses requests that would make a cluster administrator of
// whoever gets them signed.
type SubjectRestriction struct{}

var _ admission.Validator = SubjectRestriction{}

func (SubjectRestriction) Name() string { return "CertificateSubjectRestriction" }

func (SubjectRestriction) Handles(op admission.Operation) bool { return op == admission.Create }

func (SubjectRestriction) Validate(_ context.Context, a *admission.Attributes) error {
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok || !a.Is(group, plural, "") || r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
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
type Approval struct{ Authorizer authx.Authorizer }

var _ admission.Validator = Approval{}

func (Approval) Name() string { return "CertificateApproval" }

func (Approval) Handles(op admission.Operation) bool { return op == admission.Update }

func (p Approval) Validate(ctx context.Context, a *admission.Attributes) error {
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	if !ok || !a.Is(group, plural, "approval") {
		return nil
	}
	if may(ctx, p.Authorizer, a.User, "approve", r.Spec.SignerName) {
		return nil
	}
	return a.Forbid(fmt.Errorf("user not permitted to approve requests with signerName %q", r.Spec.SignerName))
}

// Signing requires the right to sign for the signer from users who set certificates and conditions.
type Signing struct{ Authorizer authx.Authorizer }

var _ admission.Validator = Signing{}

func (Signing) Name() string { return "CertificateSigning" }

func (Signing) Handles(op admission.Operation) bool { return op == admission.Update }

func (p Signing) Validate(ctx context.Context, a *admission.Attributes) error {
	r, ok := a.Object.(*certificatesv1.CertificateSigningRequest)
	old, had := a.Old.(*certificatesv1.CertificateSigningRequest)
	if !ok || !had || !a.Is(group, plural, "status") {
		return nil
	}
	if bytes.Equal(r.Status.Certificate, old.Status.Certificate) && equality.Semantic.DeepEqual(r.Status.Conditions, old.Status.Conditions) {
		return nil
	}
	if may(ctx, p.Authorizer, a.User, "sign", old.Spec.SignerName) {
		return nil
	}
	return a.Forbid(fmt.Errorf("user not permitted to sign requests with signerName %q", old.Spec.SignerName))
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
