package datadir

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// shortLife is the lifetime up to which a certificate is not backdated: the clocks of clients then matter
// less than the requested lifetime.
const shortLife = 8 * time.Hour

var keyUsages = map[certificatesv1.KeyUsage]x509.KeyUsage{
	certificatesv1.UsageDigitalSignature: x509.KeyUsageDigitalSignature,
	certificatesv1.UsageKeyEncipherment:  x509.KeyUsageKeyEncipherment,
}

var extUsages = map[certificatesv1.KeyUsage]x509.ExtKeyUsage{
	certificatesv1.UsageClientAuth: x509.ExtKeyUsageClientAuth,
	certificatesv1.UsageServerAuth: x509.ExtKeyUsageServerAuth,
}

// Sign makes a certificate of the folder's own authority for a request whose
// signature it checks, and returns it as PEM. It never outlives the authority.
func (d *Dir) Sign(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration, now time.Time) ([]byte, error) {
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("the request's signature: %w", err)
	}
	ca, err := d.signer()
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: serial, Subject: r.Subject, DNSNames: r.DNSNames, IPAddresses: r.IPAddresses, EmailAddresses: r.EmailAddresses, URIs: r.URIs,
		NotBefore: now.Add(-backdate), NotAfter: now.Add(life), BasicConstraintsValid: true,
	}
	if life >= shortLife {
		t.NotAfter = t.NotAfter.Add(-backdate)
	}
	for _, u := range usages {
		if bit, ok := keyUsages[u]; ok {
			t.KeyUsage |= bit
		} else if ext, ok := extUsages[u]; ok {
			t.ExtKeyUsage = append(t.ExtKeyUsage, ext)
		} else {
			return nil, fmt.Errorf("usage %q is not for this authority", u)
		}
	}
	if !now.Before(ca.cert.NotAfter) {
		return nil, fmt.Errorf("the authority ended at %s", ca.cert.NotAfter)
	}
	if t.NotAfter.After(ca.cert.NotAfter) {
		t.NotAfter = ca.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, r.PublicKey, ca.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// signer returns the present authority.
func (d *Dir) signer() (*pair, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Path == "" { // it is not changed
		return loadPair(d.CACert, d.CAKey)
	}
	release, err := lockExclusive(d.Path)
	if err != nil {
		return nil, err
	}
	defer release()
	return loadPair(d.CACert, d.CAKey)
}
