package clientcert

import (
	"crypto/x509"
	"time"
)

// NewVerifierAt makes a Verifier with a clock.
func NewVerifierAt(roots func() *x509.CertPool, now func() time.Time) *Verifier {
	return &Verifier{roots: roots, now: now}
}

// Looked is how many certificates were looked at, and not remembered.
func (v *Verifier) Looked() int { return int(v.looked.Load()) }
