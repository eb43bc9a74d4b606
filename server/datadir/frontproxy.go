package datadir

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"path/filepath"
	"time"
)

// FrontProxyName is the common name of a server's certificate for aggregated servers.
const FrontProxyName = "front-proxy-client"

// FrontProxy holds the files by which aggregated servers authenticate a server.
type FrontProxy struct {
	CACert, CAKey string
	Cert, Key     string
}

// FrontProxy makes or finds the client certificate for aggregated servers, and its separate authority, which
// signs nothing else: servers that trust that authority believe its certificates about the users of requests.
// From then on Renew renews both.
func (d *Dir) FrontProxy(now time.Time) (*FrontProxy, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Path == "" { // it was made with all the rest
		return d.front, nil
	}
	release, err := lockExclusive(d.Path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	defer release()
	in := func(name string) string { return filepath.Join(d.Path, name) }
	d.front = &FrontProxy{
		CACert: in("front-proxy-ca.crt"), CAKey: in("front-proxy-ca.key"),
		Cert: in("front-proxy-client.crt"), Key: in("front-proxy-client.key"),
	}
	if err := d.front.fill(now); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", d.Path, err)
	}
	return d.front, nil
}

func (f *FrontProxy) fill(now time.Time) error {
	ca, err := authority(frontProxyAuthority, f.CACert, f.CAKey, now)
	if err != nil {
		return err
	}
	// A certificate that is not valid yet is left alone: the clock is wrong.
	if due(ca.cert, now) && !now.Before(ca.cert.NotBefore) || !fits(ca.cert, ca.key) { // or a renewal was cut short
		// Readers of the old file continue to trust certificates of that authority; readers of the new file
		// trust both.
		old, err := readCertificates(f.CACert)
		if err != nil {
			return err
		}
		if ca, err = createCA(frontProxyAuthority, unexpired(old, now), f.CACert, f.CAKey, ca.cert.NotBefore, now); err != nil {
			return err
		}
	}
	return ensureLeaf(frontProxyTemplate(), ca, nil, f.Cert, f.Key, now)
}

const frontProxyAuthority = "rowlock-front-proxy-ca"

func frontProxyTemplate() *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: FrontProxyName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}
