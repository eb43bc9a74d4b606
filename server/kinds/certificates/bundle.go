package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	omitted       = "<value omitted>" // shown in messages in place of certificates
	maxBundleSize = 1 << 20
)

// ClusterTrustBundle has the rules for ClusterTrustBundles. Which names are allowed follows from
// the signer, so that the validation of the whole checks them.
var ClusterTrustBundle = kinds.Typed[*certificatesv1beta1.ClusterTrustBundle]{
	ValidateName: path.ValidatePathSegmentName,
	Validate: func(b *certificatesv1beta1.ClusterTrustBundle) field.ErrorList {
		return append(validateBundle(b), validateAnchors(b.Spec.TrustBundle)...)
	},
	ValidateUpdate: func(b, old *certificatesv1beta1.ClusterTrustBundle) field.ErrorList {
		errs := validateBundle(b)
		if b.Spec.TrustBundle != old.Spec.TrustBundle {
			errs = append(errs, validateAnchors(b.Spec.TrustBundle)...)
		}
		return append(errs, rules.Immutable(b.Spec.SignerName, old.Spec.SignerName, field.NewPath("spec", "signerName"))...)
	},
}.Strategy()

// ClusterTrustBundleFields are their selectable fields.
var ClusterTrustBundleFields = []kinds.SelectableField{{Label: "spec.signerName", Path: []string{"spec", "signerName"}}}

// ClusterTrustBundleColumns is their Table form.
var ClusterTrustBundleColumns = columns.Of(
	func(b *certificatesv1beta1.ClusterTrustBundle, _ time.Time) []any {
		signer := "<none>"
		if b.Spec.SignerName != "" {
			signer = b.Spec.SignerName
		}
		return []any{b.Name, signer}
	},
	columns.Name(),
	columns.Text("SignerName", certificatesv1beta1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"]),
)

// validateBundle checks the name and the signer.
func validateBundle(b *certificatesv1beta1.ClusterTrustBundle) field.ErrorList {
	signer := b.Spec.SignerName
	p := field.NewPath("metadata")
	var errs field.ErrorList
	if b.GenerateName != "" {
		errs = append(errs, rules.Messages(p.Child("generateName"), b.GenerateName, rules.TrustBundleName(signer, b.GenerateName, true))...)
	}
	if b.Name != "" { // that there is none is said elsewhere
		errs = append(errs, rules.Messages(p.Child("name"), b.Name, rules.TrustBundleName(signer, b.Name, false))...)
	}
	if signer != "" {
		errs = append(errs, rules.SignerName(signer, field.NewPath("spec", "signerName"))...)
	}
	return errs
}

// validateAnchors wants CA certificates, each once; text around them is left alone.
func validateAnchors(text string) field.ErrorList {
	p := field.NewPath("spec", "trustBundle")
	if len(text) > maxBundleSize {
		return field.ErrorList{field.TooLong(p, "", maxBundleSize)}
	}
	var errs field.ErrorList
	places := map[string][]int{} // by certificate
	var order []string
	block, rest := pem.Decode([]byte(text))
	for i := 0; block != nil; i++ {
		der := string(block.Bytes)
		if problem := anchorProblem(block); problem != "" {
			errs = append(errs, field.Invalid(p, omitted, fmt.Sprintf("entry %d %s", i, problem)))
		} else if places[der] = append(places[der], i); len(places[der]) == 1 {
			order = append(order, der)
		}
		block, rest = pem.Decode(rest)
	}
	if len(errs) > 0 {
		return errs
	}
	errs = rules.InvalidIf(errs, len(order) == 0, p, omitted, "at least one trust anchor must be provided")
	for _, der := range rules.Until(&errs, order) {
		if at := places[der]; len(at) > 1 {
			errs = append(errs, field.Invalid(p, omitted, fmt.Sprintf("duplicate trust anchor (indices %v)", at)))
		}
	}
	return errs
}

// anchorProblem returns why a block is no trust anchor.
func anchorProblem(block *pem.Block) string {
	if block.Type != "CERTIFICATE" {
		return "has bad block type: " + block.Type
	}
	if len(block.Headers) > 0 {
		return "has PEM block headers"
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !cert.IsCA:
		return "does not have the CA bit set"
	case !cert.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}
