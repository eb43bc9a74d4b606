package clientcert

import (
	"crypto/x509"
	"time"
)

// NewVerifierAt makes a Verifier with a clock.
func NewVerifierAt(roots func() *x509.CertPool, now func() time.Time) *Verifier {
	return &Verifier{roots: roots, now: now}
}

// Looked returns how many certificates were verified without the cache.
func (v *Verifier) Looked() int { return int(v.looked.Load()) }
