package datadir

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestWrongClocks: whatever the clock was at a start and a check, when it is right again all clients
// trust the server as before, and keep their certificates.
func TestWrongClocks(t *testing.T) {
	now := time.Now()
	for name, wrong := range map[string]time.Time{
		"1970":                   time.Unix(0, 0),
		"an hour ago":            now.Add(-time.Hour),
		"months ahead":           now.Add(leafLife * 3 / 4),
		"years ahead":            now.Add(3 * leafLife),
		"when a successor comes": now.Add(caLife * 3 / 4),
		"when all has ended":     now.Add(2 * caLife),
		"2099":                   time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		d := open(t, t.TempDir(), now)
		if _, err := d.FrontProxy(now); err != nil {
			t.Fatal(err)
		}
		roots, given := poolOf(t, d.CACert), clientCertificate(t, d, now)
		d = open(t, d.Path, wrong)
		if _, err := d.FrontProxy(wrong); err != nil {
			t.Fatal(name, err)
		}
		if _, err := d.Renew(wrong, true); err != nil {
			t.Fatal(name, err)
		}
		if _, err := d.Renew(now, true); err != nil { // the clock is right again
			t.Fatal(name, err)
		}
		for file, trusted := range map[string]*x509.CertPool{d.ServingCert: roots, d.AdminCert: poolOf(t, d.CACert), d.front.Cert: poolOf(t, d.front.CACert)} {
			list, err := readCertificates(file)
			if err != nil {
				t.Fatal(err)
			}
			usage := x509.ExtKeyUsageClientAuth
			if file == d.ServingCert {
				usage = x509.ExtKeyUsageServerAuth
			}
			if err := verify(list, trusted, usage, now); err != nil {
				t.Errorf("%s: %s: %v", name, filepath.Base(file), err)
			}
		}
		if err := verify([]*x509.Certificate{given}, poolOf(t, d.CACert), x509.ExtKeyUsageClientAuth, now); err != nil {
			t.Errorf("%s: a client's certificate: %v", name, err)
		}
	}
}

// TestEndedAuthority: one that has ended is replaced when that is asked for, and not before.
func TestEndedAuthority(t *testing.T) {
	now := time.Now()
	d := open(t, t.TempDir(), now)
	later := now.Add(caLife + week)
	if changed, err := d.Renew(later, true); err != nil || len(changed) > 0 {
		t.Errorf("changed: %q %v", changed, err)
	}
	changed, err := d.Replace(later)
	if err != nil || !slices.Contains(changed, "ca.crt") {
		t.Fatalf("changed: %q %v", changed, err)
	}
	serving, err := readCertificates(d.ServingCert)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(serving, poolOf(t, d.CACert), x509.ExtKeyUsageServerAuth, later); err != nil {
		t.Error(err)
	}
}

// TestNoRoomForTheCertificate: a renewal that cannot write the second of its files has not
// replaced the first, and leaves nothing behind.
func TestNoRoomForTheCertificate(t *testing.T) {
	now := time.Now()
	d := open(t, t.TempDir(), now)
	ca, err := loadPair(d.CACert, d.CAKey)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(d.ServingKey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := createLeaf(&x509.Certificate{Subject: pkix.Name{CommonName: "x"}}, ca, nil, filepath.Join(d.Path, "none", "x.crt"), d.ServingKey, now); err == nil {
		t.Fatal("a certificate is written into a folder that is not there")
	}
	if after, err := os.ReadFile(d.ServingKey); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the key was replaced: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(d.Path, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
