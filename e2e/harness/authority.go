package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// Authority is a certificate authority of a test.
type Authority struct {
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var serials atomic.Int64

// NewAuthority makes one.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
	}
	made := a.sign(t, template)
	a.cert, a.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	return a
}

// Revoke returns a list of the authority's certificates that are revoked, as PEM.
func (a *Authority) Revoke(t testing.TB, certs ...*tls.Certificate) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(serials.Add(1)), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	for _, c := range certs {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: c.Leaf.SerialNumber, RevocationTime: time.Now()})
	}
	issuer := *a.cert
	issuer.KeyUsage |= x509.KeyUsageCRLSign
	der, err := x509.CreateRevocationList(rand.Reader, list, &issuer, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// Client issues a client certificate: cn is the user, orgs the groups.
func (a *Authority) Client(t testing.TB, cn string, orgs ...string) *tls.Certificate {
	t.Helper()
	return a.Issue(t, func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: cn, Organization: orgs} })
}

// Server issues a certificate for a server on this machine.
func (a *Authority) Server(t testing.TB) *tls.Certificate {
	t.Helper()
	return a.Issue(t, func(c *x509.Certificate) {
		c.IPAddresses, c.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	})
}

// ServerFor issues a certificate for a server of some names and addresses.
func (a *Authority) ServerFor(t testing.TB, names ...string) *tls.Certificate {
	t.Helper()
	return a.Issue(t, func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, name)
			}
		}
	})
}

// Issue issues a client certificate, changed by change.
func (a *Authority) Issue(t testing.TB, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	change(template)
	return a.sign(t, template)
}

// sign completes a template and signs it. Without an authority the certificate is self-signed.
func (a *Authority) sign(t testing.TB, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.BasicConstraintsValid = big.NewInt(serials.Add(1)), true
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Files returns the PEM forms of a certificate and its key.
func Files(t testing.TB, c *tls.Certificate) (cert, key []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Key returns the PEM form of the authority's own key, as k3s writes it.
func (a *Authority) Key(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// IssueWith signs a client certificate with a certificate that need not be an authority.
func IssueWith(t testing.TB, parent *tls.Certificate, cn string, orgs ...string) *tls.Certificate {
	t.Helper()
	a := &Authority{cert: parent.Leaf, key: parent.PrivateKey.(*ecdsa.PrivateKey)}
	return a.Client(t, cn, orgs...)
}
