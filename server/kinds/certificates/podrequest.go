package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	maxKeySize      = 10 << 10
	maxChainSize    = 100 << 10
	maxUID          = 128
	shortestPodLife = 3600
	longestPodLife  = 91 * 24 * 3600
	longestOurLife  = 24 * 3600 // of certificates by signers of Kubernetes
)

// PodCertificateRequest has the rules for PodCertificateRequests: a kubelet asks once, and a signer answers once.
var PodCertificateRequest = kinds.Typed[*certificatesv1beta1.PodCertificateRequest]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Default: func(r *certificatesv1beta1.PodCertificateRequest) {
		rules.DefaultTo(&r.Spec.MaxExpirationSeconds, longestOurLife)
	},
	Validate: validatePodRequest,
	ValidateUpdate: func(r, old *certificatesv1beta1.PodCertificateRequest) field.ErrorList {
		return rules.Immutable(r.Spec, old.Spec, podSpecPath)
	},
	Status: &kinds.Status[*certificatesv1beta1.PodCertificateRequest]{
		Prepare: func(r, old *certificatesv1beta1.PodCertificateRequest) {
			metav1.ResetObjectMetaForStatus(&r.ObjectMeta, &old.ObjectMeta)
		},
		Validate: validatePodRequestStatus,
		Rights:   signingRight,
	},
}.Strategy()

// signingRight returns the right that a change of the status needs: to sign for the signer, or for all signers of
// its domain.
func signingRight(r, old *certificatesv1beta1.PodCertificateRequest, _, _ string) []kinds.Right {
	if rules.Same(r.Status, old.Status) {
		return nil
	}
	signer := old.Spec.SignerName
	domain, _, _ := strings.Cut(signer, "/")
	return []kinds.Right{{
		Field: podSpecPath.Child("signerName"), Brief: true, Last: true, Verbs: []string{"sign"}, Resource: "signers", Names: []string{signer, domain + "/*"},
		Detail: func(user string) string {
			return fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", user, signer)
		},
	}}
}

// PodCertificateRequestFields are their selectable fields.
var PodCertificateRequestFields = []kinds.SelectableField{
	{Label: "spec.signerName", Path: []string{"spec", "signerName"}},
	{Label: "spec.podName", Path: []string{"spec", "podName"}},
	{Label: "spec.nodeName", Path: []string{"spec", "nodeName"}},
}

// PodCertificateRequestColumns is their Table form.
var PodCertificateRequestColumns = columns.Of(
	func(r *certificatesv1beta1.PodCertificateRequest, _ time.Time) []any {
		state := "Pending"
		for _, c := range r.Status.Conditions {
			if slices.Contains(ends(), c.Type) {
				state = c.Type
			}
		}
		s := &r.Spec
		return []any{r.Name, s.PodName, s.ServiceAccountName, string(s.NodeName), s.SignerName, state, labels.FormatLabels(s.UnverifiedUserAnnotations)}
	},
	columns.Name(),
	columns.Text("PodName", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["podName"]),
	columns.Text("ServiceAccountName", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["serviceAccountName"]),
	columns.Text("NodeName", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["nodeName"]),
	columns.Text("SignerName", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["signerName"]),
	columns.Text("State", "Is the request Pending, Issued, Denied, or Failed?"),
	columns.Text("UnverifiedUserAnnotations", certificatesv1beta1.PodCertificateRequestSpec{}.SwaggerDoc()["unverifiedUserAnnotations"]),
)

// ends returns the conditions that end a request, in the order in which errors name them.
func ends() []string {
	return []string{certificatesv1beta1.PodCertificateRequestConditionTypeIssued, certificatesv1beta1.PodCertificateRequestConditionTypeDenied, certificatesv1beta1.PodCertificateRequestConditionTypeFailed}
}

var (
	podSpecPath   = field.NewPath("spec")
	podStatusPath = field.NewPath("status")
	stubPath      = podSpecPath.Child("stubPKCS10Request")
	publicKeyPath = podSpecPath.Child("pkixPublicKey")
)

func validatePodRequest(r *certificatesv1beta1.PodCertificateRequest) field.ErrorList {
	s := &r.Spec
	errs := rules.SignerName(s.SignerName, podSpecPath.Child("signerName"))
	errs = append(errs, validateUserAnnotations(s.UnverifiedUserAnnotations, podSpecPath.Child("unverifiedUserAnnotations"))...)
	for _, of := range []struct {
		what, name, uid string
	}{{"pod", s.PodName, string(s.PodUID)}, {"serviceAccount", s.ServiceAccountName, string(s.ServiceAccountUID)}, {"node", string(s.NodeName), string(s.NodeUID)}} {
		errs = append(errs, rules.Subdomain(of.name, podSpecPath.Child(of.what+"Name"))...)
		uid := podSpecPath.Child(of.what + "UID")
		errs = rules.InvalidIf(errs, of.uid == "", uid, of.uid, "must not be empty")
		if len(of.uid) > maxUID {
			errs = append(errs, field.TooLong(uid, "", maxUID))
		}
	}
	life := podSpecPath.Child("maxExpirationSeconds")
	if s.MaxExpirationSeconds == nil {
		return append(errs, field.Required(life, "must be set"))
	}
	longest := int32(longestPodLife)
	if domain, _, _ := strings.Cut(s.SignerName, "/"); domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		longest = longestOurLife
	}
	n := *s.MaxExpirationSeconds
	errs = rules.InvalidIf(errs, n < shortestPodLife || n > longest, life, n, fmt.Sprintf("must be in the range [%d, %d]", shortestPodLife, longest))
	stub, key, proof := len(s.StubPKCS10Request) > 0, len(s.PKIXPublicKey) > 0, len(s.ProofOfPossession) > 0
	switch {
	case stub && !key && !proof:
		return append(errs, validateStub(s.StubPKCS10Request)...)
	case !stub && key && proof:
		return append(errs, validateProof(s)...)
	}
	return append(errs, field.Invalid(podSpecPath, field.OmitValueType{}, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"))
}

func validateUserAnnotations(annotations map[string]string, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range rules.Until(&errs, slices.Sorted(maps.Keys(annotations))) {
		errs = append(errs, validation.IsDomainPrefixedKey(p, strings.ToLower(key))...)
	}
	if apivalidation.ValidateAnnotationsSize(annotations) != nil {
		errs = append(errs, field.TooLong(p, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return errs
}

// keyFault returns the fault of a public key; nil if it can be used.
func keyFault(key any, p *field.Path, unknown any, curves string) *field.Error {
	switch k := key.(type) {
	case ed25519.PublicKey:
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() && k.Curve != elliptic.P521() {
			return field.Invalid(p, "curve "+k.Curve.Params().Name, "elliptic public keys must use curve "+curves)
		}
	case *rsa.PublicKey:
		if bits := k.Size() * 8; bits != 3072 && bits != 4096 {
			return field.Invalid(p, fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096")
		}
	default:
		return field.Invalid(p, unknown, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")
	}
	return nil
}

func validateStub(der []byte) field.ErrorList {
	if len(der) > maxKeySize {
		return field.ErrorList{field.TooLong(stubPath, "", maxKeySize)}
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return field.ErrorList{field.Invalid(stubPath, field.OmitValueType{}, "must be a valid PKCS#10 CSR")}
	}
	if fault := keyFault(r.PublicKey, stubPath, field.OmitValueType{}, "P256, P384, or P521"); fault != nil {
		return field.ErrorList{fault}
	}
	return rules.InvalidIf(nil, r.CheckSignature() != nil, stubPath, field.OmitValueType{}, "invalid signature")
}

// validateProof checks that the client has the private key: it signed the UID of the Pod.
func validateProof(s *certificatesv1beta1.PodCertificateRequestSpec) field.ErrorList {
	proof := podSpecPath.Child("proofOfPossession")
	if len(s.PKIXPublicKey) > maxKeySize {
		return field.ErrorList{field.TooLong(publicKeyPath, "", maxKeySize)}
	}
	if len(s.ProofOfPossession) > maxKeySize {
		return field.ErrorList{field.TooLong(proof, "", maxKeySize)}
	}
	key, err := x509.ParsePKIXPublicKey(s.PKIXPublicKey)
	if err != nil {
		return field.ErrorList{field.Invalid(publicKeyPath, s.PKIXPublicKey, "must be a valid PKIX-serialized public key")}
	}
	if fault := keyFault(key, publicKeyPath, s.PKIXPublicKey, "P256 or P384"); fault != nil {
		return field.ErrorList{fault}
	}
	sum, proven := sha256.Sum256([]byte(s.PodUID)), false
	switch k := key.(type) {
	case ed25519.PublicKey:
		proven = ed25519.Verify(k, []byte(s.PodUID), s.ProofOfPossession)
	case *ecdsa.PublicKey:
		proven = ecdsa.VerifyASN1(k, sum[:], s.ProofOfPossession)
	case *rsa.PublicKey:
		proven = rsa.VerifyPSS(k, crypto.SHA256, sum[:], s.ProofOfPossession, nil) == nil
	}
	return rules.InvalidIf(nil, !proven, proof, field.OmitValueType{}, "could not verify proof-of-possession signature")
}

// has reports whether one of some conditions of a request is true.
func has(r *certificatesv1beta1.PodCertificateRequest, types ...string) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionTrue && slices.Contains(types, c.Type)
	})
}

func validatePodRequestStatus(r, old *certificatesv1beta1.PodCertificateRequest) field.ErrorList {
	var errs field.ErrorList
	known := 0
	conditions := podStatusPath.Child("conditions")
	for i, c := range rules.Until(&errs, r.Status.Conditions) {
		at := conditions.Child(fmt.Sprintf("[%d]", i))
		if !slices.Contains(ends(), c.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), c.Type, ends()))
			continue
		}
		known++
		errs = rules.InvalidIf(errs, known > 1, at.Child("type"), c.Type, `There may be at most one condition with type "Issued", "Denied", or "Failed"`)
		if c.Status != metav1.ConditionTrue {
			errs = append(errs, field.NotSupported(at.Child("status"), c.Status, []metav1.ConditionStatus{metav1.ConditionTrue}))
		}
	}
	if errs = append(errs, rules.Conditions(r.Status.Conditions, conditions)...); len(errs) > 0 {
		return errs
	}
	same := func(want certificatesv1beta1.PodCertificateRequestStatus, detail string) field.ErrorList {
		return rules.InvalidIf(nil, !rules.Same(r.Status, want), podStatusPath, field.OmitValueType{}, detail)
	}
	issued, denied, failed := ends()[0], ends()[1], ends()[2]
	switch {
	case has(old, issued, denied, failed):
		return same(old.Status, "immutable after PodCertificateRequest is issued, denied, or failed")
	case has(r, denied, failed):
		return same(certificatesv1beta1.PodCertificateRequestStatus{Conditions: r.Status.Conditions}, "non-condition status fields must be empty when denying or failing the PodCertificateRequest")
	case has(r, issued):
		return validateChain(r, old)
	}
	return same(old.Status, `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
}

// validateChain checks an issued chain: certificates, of which the first is for the key of the request.
func validateChain(r, old *certificatesv1beta1.PodCertificateRequest) field.ErrorList {
	chain, p := r.Status.CertificateChain, podStatusPath.Child("certificateChain")
	bad := func(detail string) field.ErrorList { return field.ErrorList{field.Invalid(p, chain, detail)} }
	if len(chain) > maxChainSize {
		return field.ErrorList{field.TooLong(p, "", maxChainSize)}
	}
	block, rest := pem.Decode([]byte(chain))
	switch {
	case block == nil:
		return bad("issued certificate chain must contain at least one certificate")
	case block.Type != "CERTIFICATE":
		return bad("issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return bad("leaf certificate does not parse as valid X.509")
	}
	errs := validateNames(leaf, p)
	key, err := x509.ParsePKIXPublicKey(old.Spec.PKIXPublicKey)
	if len(old.Spec.StubPKCS10Request) > 0 {
		stub, fault := x509.ParseCertificateRequest(old.Spec.StubPKCS10Request)
		if fault != nil {
			return append(errs, field.Invalid(stubPath, field.OmitValueType{}, "must be a valid PKCS#10 CSR"))
		}
		key, err = stub.PublicKey, nil
	}
	if err != nil {
		return append(errs, field.Invalid(publicKeyPath, field.OmitValueType{}, "must be a valid PKIX-serialized public key"))
	}
	if k, ok := key.(interface{ Equal(crypto.PublicKey) bool }); ok && !k.Equal(leaf.PublicKey) {
		return append(errs, bad("leaf certificate was not issued to the requested public key")...)
	}
	s := &r.Status
	errs = rules.RequiredIf(errs, s.NotBefore == nil, podStatusPath.Child("notBefore"), "must be present and consistent with the issued certificate")
	errs = rules.RequiredIf(errs, s.NotAfter == nil, podStatusPath.Child("notAfter"), "must be present and consistent with the issued certificate")
	errs = rules.RequiredIf(errs, s.BeginRefreshAt == nil, podStatusPath.Child("beginRefreshAt"), "must be present and in the range [notbefore+10min, notafter-10min]")
	if len(errs) > 0 {
		return errs
	}
	if errs := validateTimes(r, leaf, p); len(errs) > 0 {
		return errs
	}
	for block, rest = pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return bad("issued certificate chain must consist entirely of CERTFICATE PEM blocks")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return bad("intermediate certificate does not parse as valid X.509")
		}
	}
	return nil
}

func validateNames(leaf *x509.Certificate, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range rules.Until(&errs, leaf.DNSNames) {
		errs = rules.InvalidIf(errs, name == "", p, name, "leaf certificate should not contain empty DNSName")
		errs = rules.InvalidIf(errs, strings.Contains(name, ".."), p, name, "leaf certificate's DNSName should not contain '..'")
		errs = rules.InvalidIf(errs, strings.HasPrefix(name, ".") || strings.HasSuffix(name, "."), p, name, "leaf certificate's DNSName should not start or end with '.'")
	}
	for _, address := range rules.Until(&errs, leaf.EmailAddresses) {
		_, err := mail.ParseAddress(address)
		errs = rules.InvalidIf(errs, err != nil, p, address, "leaf certificate should not contain invalid EmailAddress")
	}
	return errs
}

func validateTimes(r *certificatesv1beta1.PodCertificateRequest, leaf *x509.Certificate, p *field.Path) field.ErrorList {
	begin, end, refresh := r.Status.NotBefore.Time, r.Status.NotAfter.Time, r.Status.BeginRefreshAt.Time
	life, longest := leaf.NotAfter.Sub(leaf.NotBefore), rules.Value(r.Spec.MaxExpirationSeconds)
	const slack, near = 10 * time.Minute, 5 * time.Minute
	for _, rule := range []struct {
		broken bool
		at     *field.Path
		value  any
		detail string
	}{
		{!begin.Equal(leaf.NotBefore), podStatusPath.Child("notBefore"), begin, "must be set to the NotBefore time encoded in the leaf certificate"},
		{time.Since(begin).Abs() >= near, podStatusPath.Child("notBefore"), begin, "must be set to within 5 minutes of kube-apiserver's current time"},
		{!end.Equal(leaf.NotAfter), podStatusPath.Child("notAfter"), end, "must be set to the NotAfter time encoded in the leaf certificate"},
		{life < time.Hour, p, life, "leaf certificate lifetime must be >= 1 hour"},
		{life > time.Duration(longest)*time.Second, p, life, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", longest)},
		{refresh.Before(begin.Add(slack)), podStatusPath.Child("beginRefreshAt"), refresh, "must be at least 10 minutes after status.notBefore"},
		{refresh.After(end.Add(-slack)), podStatusPath.Child("beginRefreshAt"), refresh, "must be at least 10 minutes before status.notAfter"},
	} {
		if rule.broken {
			return field.ErrorList{field.Invalid(rule.at, rule.value, rule.detail)}
		}
	}
	return nil
}
