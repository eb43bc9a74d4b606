package datadir

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestFrontProxy: the certificate for aggregated servers has an authority of its own, stays
// from start to start, and is renewed before it ends.
func TestFrontProxy(t *testing.T) {
	now := time.Now()
	d := open(t, filepath.Join(t.TempDir(), "data"), now)
	load := func(at time.Time) (*pair, *pair) {
		t.Helper()
		f, err := d.FrontProxy(at)
		if err != nil {
			t.Fatal(err)
		}
		ca, err := loadPair(f.CACert, f.CAKey)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := loadPair(f.Cert, f.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{f.CAKey, f.Key} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
		return ca, leaf
	}
	ca, leaf := load(now)
	own, err := loadPair(d.CACert, d.CAKey)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	if _, err := leaf.cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil || leaf.cert.Subject.CommonName != FrontProxyName {
		t.Errorf("%s: %v", leaf.cert.Subject, err)
	}
	if leaf.cert.CheckSignatureFrom(own.cert) == nil {
		t.Error("signed by the authority of clients")
	}
	if _, again := load(now.Add(time.Hour)); !again.cert.Equal(leaf.cert) {
		t.Error("made again an hour later")
	}
	for _, want := range []bool{true, false} { // at the second look there is nothing to do
		changed, err := d.Renew(now.Add(leafLife*3/4), false)
		if err != nil || slices.Contains(changed, "front-proxy-client.crt") != want {
			t.Errorf("renewed: %v, %v", changed, err)
		}
	}
	later, renewed := load(now.Add(leafLife * 3 / 4))
	if renewed.cert.Equal(leaf.cert) || !later.cert.Equal(ca.cert) {
		t.Error("not renewed by the same authority")
	}
	last := now.Add(caLife * 3 / 4)
	next, leaf := load(last)
	bundle, err := readCertificates(d.front.CACert)
	if err != nil || len(bundle) != 2 || next.cert.Equal(ca.cert) || !bundle[1].Equal(ca.cert) || leaf.cert.CheckSignatureFrom(next.cert) != nil {
		t.Errorf("the authority's successor: %d certificates, %v", len(bundle), err)
	}
	// The key of a third one is there already, when the server is killed.
	if _, err := createCA("third", nil, filepath.Join(t.TempDir(), "cert"), d.front.CAKey, last, last); err != nil {
		t.Fatal(err)
	}
	third, leaf := load(last)
	if third.cert.Equal(next.cert) || leaf.cert.CheckSignatureFrom(third.cert) != nil {
		t.Error("a renewal that was cut short is not finished")
	}
}
