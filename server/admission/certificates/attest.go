package certificates

import (
	"context"
	"fmt"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
)

// Attest requires the right to attest for a signer for writes of its ClusterTrustBundles. Each write
// costs two questions to the authorizer at most.
func Attest(z authx.Authorizer) admission.Validator {
	return admission.Check[*certificatesv1beta1.ClusterTrustBundle]{
		Writes: admission.Writes{Plugin: "ClusterTrustBundleAttest", Operations: []admission.Operation{admission.Create, admission.Update}, Group: group, Plural: "clustertrustbundles"},
		Refuse: func(ctx context.Context, a *admission.Attributes, b, _ *certificatesv1beta1.ClusterTrustBundle) error {
			switch {
			case b.Spec.SignerName == "": // the signer of an object never changes, so the check may use the new one
				return nil
			case a.Operation == admission.Update && a.OnlyGarbage(): // the trusted certificates stay the same
				return nil
			case may(ctx, z, a.User, "attest", b.Spec.SignerName):
				return nil
			}
			return a.Forbid(fmt.Errorf("user not permitted to attest for signerName %q", b.Spec.SignerName))
		},
	}
}
