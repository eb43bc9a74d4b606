package certificates

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	legacySigner  = "kubernetes.io/legacy-unknown"
	minExpiration = 600 // seconds
)

var usages = []certificatesv1.KeyUsage{
	certificatesv1.UsageAny, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
	certificatesv1.UsageContentCommitment, certificatesv1.UsageCRLSign, certificatesv1.UsageDataEncipherment,
	certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature, certificatesv1.UsageEmailProtection,
	certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel,
	certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC, certificatesv1.UsageOCSPSigning,
	certificatesv1.UsageSMIME, certificatesv1.UsageServerAuth, certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
}

// permission lists the parts that an endpoint may change.
type permission int

const (
	mayNothing permission = iota
	mayApprove            // conditions Approved and Denied
	mayCertify            // the certificate
)

// leniency tolerates faults that a stored request already has.
type leniency struct {
	bothDecisions, duplicateConditions, emptyConditions bool
	legacySigner, anyUsage, duplicateUsages             bool
	anyCertificate                                      bool
}

// requestRules are the rules that depend on the release.
type requestRules struct{ now bool } // those after 1.32

func (q requestRules) validate(obj *certificatesv1.CertificateSigningRequest) field.ErrorList {
	return q.validateWhole(obj, leniency{})
}

func (q requestRules) validateUpdate(may permission) func(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	return func(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
		errs := q.validateWhole(r, tolerated(r, old))
		errs = append(errs, q.validateDecisions(r, old, may)...)
		if bytes.Equal(r.Status.Certificate, old.Status.Certificate) {
			return errs
		}
		p := field.NewPath("status", "certificate")
		switch {
		case may != mayCertify:
			errs = append(errs, field.Forbidden(p, "updates may not set certificate content"))
		case len(old.Status.Certificate) > 0:
			errs = append(errs, field.Forbidden(p, "updates may not modify existing certificate content"))
		}
		return errs
	}
}

func tolerated(r, old *certificatesv1.CertificateSigningRequest) leniency {
	l := leniency{
		bothDecisions: len(conditionIndexes(old, certificatesv1.CertificateApproved)) > 0 &&
			len(conditionIndexes(old, certificatesv1.CertificateDenied)) > 0,
		legacySigner:   old.Spec.SignerName == legacySigner,
		anyCertificate: bytes.Equal(r.Status.Certificate, old.Status.Certificate) || certificateFault(old.Status.Certificate) != nil,
	}
	types := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range old.Status.Conditions {
		l.duplicateConditions = l.duplicateConditions || types[c.Type]
		l.emptyConditions = l.emptyConditions || c.Type == ""
		types[c.Type] = true
	}
	seen := map[certificatesv1.KeyUsage]bool{}
	for _, u := range old.Spec.Usages {
		l.duplicateUsages = l.duplicateUsages || seen[u]
		l.anyUsage = l.anyUsage || len(rules.OneOf(u, nil, usages...)) > 0
		seen[u] = true
	}
	return l
}

func (q requestRules) difference(old, value any) string {
	if q.now {
		return rules.DifferenceSince133(old, value)
	}
	return rules.Difference(old, value)
}

// validateDecisions checks that decisions stay, and are made where they may be.
func (q requestRules) validateDecisions(r, old *certificatesv1.CertificateSigningRequest, may permission) field.ErrorList {
	p := field.NewPath("status", "conditions")
	var errs field.ErrorList
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		if len(conditionIndexes(r, t)) < len(conditionIndexes(old, t)) {
			errs = append(errs, field.Forbidden(p, fmt.Sprintf("updates may not remove a condition of type %q", t)))
		}
	}
	if may == mayApprove {
		return errs
	}
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied} {
		mine, theirs := conditionsOf(r, t), conditionsOf(old, t)
		switch {
		case len(mine) > len(theirs):
			errs = append(errs, field.Forbidden(p, fmt.Sprintf("updates may not add a condition of type %q", t)))
		case len(mine) == len(theirs) && !rules.Same(mine, theirs):
			errs = append(errs, field.Forbidden(p, fmt.Sprintf("updates may not modify a condition of type %q\n%v", t, q.difference(theirs, mine))))
		}
	}
	return errs
}

func conditionsOf(r *certificatesv1.CertificateSigningRequest, t certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
	var out []certificatesv1.CertificateSigningRequestCondition
	for _, i := range conditionIndexes(r, t) {
		out = append(out, r.Status.Conditions[i])
	}
	return out
}

func (q requestRules) validateWhole(r *certificatesv1.CertificateSigningRequest, l leniency) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if err := requestFault(r.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(p.Child("request"), r.Spec.Request, err.Error()))
	}
	errs = append(errs, validateUsages(r.Spec.Usages, p.Child("usages"), l)...)
	if r.Spec.SignerName == legacySigner && !l.legacySigner {
		errs = append(errs, field.Invalid(p.Child("signerName"), r.Spec.SignerName, "the legacy signerName is not allowed via this API version"))
	} else {
		errs = append(errs, rules.SignerName(r.Spec.SignerName, p.Child("signerName"))...)
	}
	if s := r.Spec.ExpirationSeconds; s != nil && *s < minExpiration {
		errs = append(errs, field.Invalid(p.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	errs = append(errs, q.validateConditions(r.Status.Conditions, field.NewPath("status", "conditions"), l)...)
	if !l.anyCertificate {
		if err := certificateFault(r.Status.Certificate); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("status", "certificate"), "<certificate data>", err.Error()))
		}
	}
	return errs
}

func validateUsages(list []certificatesv1.KeyUsage, p *field.Path, l leniency) field.ErrorList {
	errs := rules.RequiredIf(nil, len(list) == 0, p, "")
	if !l.anyUsage {
		errs = append(errs, rules.Each(list, p, func(u certificatesv1.KeyUsage, at *field.Path) field.ErrorList { return rules.OneOf(u, at, usages...) })...)
	}
	seen := rules.Seen[certificatesv1.KeyUsage]{}
	return append(errs, rules.Each(list, p, func(u certificatesv1.KeyUsage, at *field.Path) field.ErrorList {
		return rules.DuplicateIf(nil, seen.Again(u) && !l.duplicateUsages, at, u)
	})...)
}

func (q requestRules) validateConditions(list []certificatesv1.CertificateSigningRequestCondition, p *field.Path, l leniency) field.ErrorList {
	seen := map[certificatesv1.RequestConditionType]bool{}
	return rules.EachPtr(list, p, func(c *certificatesv1.CertificateSigningRequestCondition, at *field.Path) field.ErrorList {
		errs := rules.RequiredIf(nil, c.Type == "" && !l.emptyConditions, at.Child("type"), "")
		errs = append(errs, rules.RequiredOneOf(c.Status, at.Child("status"), statesOf(c.Type)...)...)
		opposite := map[certificatesv1.RequestConditionType]certificatesv1.RequestConditionType{
			certificatesv1.CertificateApproved: certificatesv1.CertificateDenied,
			certificatesv1.CertificateDenied:   certificatesv1.CertificateApproved,
		}[c.Type]
		contradicted := at.Child("type")
		if q.now {
			contradicted = p
		}
		errs = rules.InvalidIf(errs, opposite != "" && seen[opposite] && !l.bothDecisions, contradicted, c.Type, "Approved and Denied conditions are mutually exclusive")
		errs = rules.DuplicateIf(errs, seen[c.Type] && !l.duplicateConditions, at.Child("type"), c.Type)
		seen[c.Type] = true
		return errs
	})
}

// statesOf lists the statuses of a condition; decisions can only be true.
func statesOf(t certificatesv1.RequestConditionType) []corev1.ConditionStatus {
	switch t {
	case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
		return []corev1.ConditionStatus{corev1.ConditionTrue}
	default:
		return []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
	}
}

// requestFault returns why a PKCS#10 request in PEM is invalid.
func requestFault(text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	if key, ok := r.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxModulus {
		return fmt.Errorf("RSA keys of more than %d bits are not accepted", maxModulus)
	}
	return r.CheckSignature()
}

// maxModulus bounds the RSA keys whose signatures are checked. The work grows with the
// square of their size, and nothing ends it: the key that fits a body would take minutes.
// TLS takes keys of half of this.
const maxModulus = 16384

func certificateFault(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	found := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) != 0 {
			return errors.New("no PEM block headers are permitted")
		}
		found = true
		certs, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certs) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
	}
	if !found {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}
