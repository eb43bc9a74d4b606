// Package clientcert authenticates by x509 client certificates: the subject's
// common name is the user, each organization a group.
package clientcert

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/authx"
)

// CredentialID is the extra key that names the certificate used.
const CredentialID = "authentication.kubernetes.io/credential-id"

// Authenticator verifies the certificate that came with the TLS connection.
type Authenticator struct {
	roots func() *x509.CertPool
	now   func() time.Time
}

// New makes an Authenticator; roots is asked on each request, so that it can be
// reloaded. A nil pool trusts nobody.
func New(roots func() *x509.CertPool) *Authenticator {
	return &Authenticator{roots: roots, now: time.Now}
}

// Authenticate implements authx.Authenticator. A certificate without common name
// is not ours.
func (a *Authenticator) Authenticate(r *http.Request) (*authx.Authenticated, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	opts := x509.VerifyOptions{
		Roots: a.roots(), CurrentTime: a.now(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if opts.Roots == nil {
		opts.Roots = x509.NewCertPool() // nil would mean the system's
	}
	for _, c := range r.TLS.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(opts); err != nil {
		return nil, true, fmt.Errorf("verifying client certificate SN=%d: %w", leaf.SerialNumber, err)
	}
	if leaf.Subject.CommonName == "" {
		return nil, false, nil
	}
	sum := sha256.Sum256(leaf.Raw)
	return &authx.Authenticated{Identity: &authx.Identity{
		Name: leaf.Subject.CommonName, Groups: leaf.Subject.Organization,
		Extra: map[string][]string{CredentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}}, true, nil
}
