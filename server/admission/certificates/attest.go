package certificates

import (
	"context"
	"fmt"

	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
)

// Attest requires the right to attest for a signer for writes of its ClusterTrustBundles. Each write
// costs two questions to the authorizer at most.
type Attest struct{ Authorizer authx.Authorizer }

var _ admission.Validator = Attest{}

func (Attest) Name() string { return "ClusterTrustBundleAttest" }

func (Attest) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

func (p Attest) Validate(ctx context.Context, a *admission.Attributes) error {
	b, ok := a.Object.(*certificatesv1alpha1.ClusterTrustBundle)
	if !ok || !a.Is(group, "clustertrustbundles", "") || b.Spec.SignerName == "" {
		return nil // the signer of an object never changes, so the check may use the new one
	}
	if a.Operation == admission.Update && a.OnlyGarbage() {
		return nil // the trusted certificates stay the same
	}
	if may(ctx, p.Authorizer, a.User, "attest", b.Spec.SignerName) {
		return nil
	}
	return a.Forbid(fmt.Errorf("user not permitted to attest for signerName %q", b.Spec.SignerName))
}
