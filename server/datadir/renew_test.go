package datadir

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

const week = 7 * 24 * time.Hour

func poolOf(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	list, err := readCertificates(path)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	for _, c := range list {
		pool.AddCert(c)
	}
	return pool
}

func verify(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, now time.Time) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: now})
	return err
}

// clientCertificate returns one that the authority signed for a client.
func clientCertificate(t *testing.T, d *Dir, now time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "ann"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.Sign(r, []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, 365*24*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestYears: over thirty years, with a look every four weeks, no client that trusts an authority or
// has a certificate is ever refused before that expires, and nothing is close to its expiry.
func TestYears(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := open(t, t.TempDir(), start)
	type trusting struct {
		at    time.Time
		ends  time.Time // the expiry of the newest at that time
		roots *x509.CertPool
	}
	var clients []trusting
	var given []*x509.Certificate
	authorities := map[string]bool{}
	for now := start; now.Before(start.Add(30 * 365 * 24 * time.Hour)); now = now.Add(4 * week) {
		if _, err := d.Renew(now, true); err != nil {
			t.Fatal(now, err)
		}
		serving, err := readCertificates(d.ServingCert)
		if err != nil {
			t.Fatal(err)
		}
		list, err := readCertificates(d.CACert)
		if err != nil || len(list) > 2 {
			t.Fatal(now, err, len(list))
		}
		authorities[list[0].SerialNumber.String()] = true
		for name, end := range d.Ends() {
			if left := end.Sub(now); left < 100*24*time.Hour {
				t.Fatalf("%s: %s has %s left", now, name, left)
			}
		}
		clients = append(clients, trusting{now, list[0].NotAfter, poolOf(t, d.CACert)})
		clients = slices.DeleteFunc(clients, func(c trusting) bool { return !now.Before(c.ends) })
		// All of them are too many to ask each week: those that were issued first and last,
		// and some between.
		for i := 0; i < len(clients); i += 1 + len(clients)/8 {
			if err := verify(serving, clients[i].roots, x509.ExtKeyUsageServerAuth, now); err != nil {
				t.Fatalf("%s: a client that trusts the authority of %s: %v", now, clients[i].at, err)
			}
		}
		given = append(given, clientCertificate(t, d, now))
		given = slices.DeleteFunc(given, func(c *x509.Certificate) bool { return now.After(c.NotAfter) })
		trusted := poolOf(t, d.CACert)
		for i := 0; i < len(given); i += 3 {
			if err := verify(given[i:i+1], trusted, x509.ExtKeyUsageClientAuth, now); err != nil {
				t.Fatalf("%s: a client's certificate of %s: %v", now, given[i].NotBefore, err)
			}
		}
	}
	if n := len(authorities); n < 4 || n > 6 {
		t.Errorf("%d authorities in thirty years", n)
	}
}

// TestSharedAuthority: a server does not replace files that servers share, and
// adopts a replacement by an operator.
func TestSharedAuthority(t *testing.T) {
	now := time.Now()
	d := open(t, t.TempDir(), now)
	before := contents(t, d)
	changed, err := d.Renew(now.Add(caLife-week), false)
	if err != nil || slices.Contains(changed, "ca.crt") || contents(t, d)["ca.key"] != before["ca.key"] {
		t.Errorf("changed: %q %v", changed, err)
	}
	other := open(t, t.TempDir(), now)
	for _, name := range []string{"ca.key", "ca.crt"} {
		data, err := os.ReadFile(filepath.Join(other.Path, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(d.Path, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	changed, err = d.Renew(now, false)
	if want := []string{"serving.crt", "admin.crt", "admin.kubeconfig"}; err != nil || !slices.Equal(changed[len(changed)-3:], want) {
		t.Errorf("changed: %q %v", changed, err)
	}
	serving, err := readCertificates(d.ServingCert)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(serving, poolOf(t, other.CACert), x509.ExtKeyUsageServerAuth, now); err != nil {
		t.Error(err)
	}
}

// TestSuccessionCutShort: wherever a succession is cut short, the folder is whole after
// the next start, and old clients are served.
func TestSuccessionCutShort(t *testing.T) {
	now := time.Now()
	later := now.Add(caLife*2/3 + time.Hour)
	for name, cut := range map[string]func(old, whole map[string]string) map[string]string{
		"before the key": func(old, whole map[string]string) map[string]string {
			return map[string]string{"ca-next.crt": whole["ca.crt"], "ca-cross.crt": whole["ca-cross.crt"], "ca.crt": old["ca.crt"], "ca.key": old["ca.key"]}
		},
		"with the key beside": func(old, whole map[string]string) map[string]string {
			return map[string]string{"ca-next.crt": whole["ca.crt"], "ca-next.key": whole["ca.key"], "ca-cross.crt": whole["ca-cross.crt"], "ca.crt": old["ca.crt"], "ca.key": old["ca.key"]}
		},
		"behind the key": func(old, whole map[string]string) map[string]string {
			return map[string]string{"ca-next.crt": whole["ca.crt"], "ca-cross.crt": whole["ca-cross.crt"], "ca.crt": old["ca.crt"], "ca.key": whole["ca.key"]}
		},
	} {
		d := open(t, t.TempDir(), now)
		old, roots := contents(t, d), poolOf(t, d.CACert)
		if _, err := d.Renew(later, true); err != nil {
			t.Fatal(err)
		}
		for file, text := range cut(old, contents(t, d)) {
			if err := os.WriteFile(filepath.Join(d.Path, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d = open(t, d.Path, later)
		if _, err := d.Renew(later, true); err != nil {
			t.Fatal(name, err)
		}
		serving, err := readCertificates(d.ServingCert)
		if err != nil {
			t.Fatal(err)
		}
		for _, trusted := range []*x509.CertPool{roots, poolOf(t, d.CACert)} {
			if err := verify(serving, trusted, x509.ExtKeyUsageServerAuth, later); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, left := range []string{"ca-next.crt", "ca-next.key"} {
			if _, err := os.Stat(filepath.Join(d.Path, left)); err == nil {
				t.Errorf("%s: %s is left", name, left)
			}
		}
		if ca, err := loadPair(d.CACert, d.CAKey); err != nil || !fits(ca.cert, ca.key) {
			t.Errorf("%s: the authority does not fit its key: %v", name, err)
		}
	}
}

// TestLeafCutShort: a key whose certificate was not written any more gets one.
func TestLeafCutShort(t *testing.T) {
	now := time.Now()
	d := open(t, t.TempDir(), now)
	d.front = nil
	if _, err := d.FrontProxy(now); err != nil {
		t.Fatal(err)
	}
	before := contents(t, d)
	later := now.Add(leafLife*2/3 + time.Hour)
	if _, err := d.Renew(later, true); err != nil {
		t.Fatal(err)
	}
	pairs := map[string]string{"serving.crt": "serving.key", "admin.crt": "admin.key", "front-proxy-client.crt": "front-proxy-client.key"}
	for cert := range pairs {
		if err := os.WriteFile(filepath.Join(d.Path, cert), []byte(before[cert]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// The clock is such that the certificates of before are good still.
	d = open(t, d.Path, now)
	if _, err := d.FrontProxy(now); err != nil {
		t.Fatal(err)
	}
	for cert, key := range pairs {
		if p, err := loadPair(filepath.Join(d.Path, cert), filepath.Join(d.Path, key)); err != nil || !fits(p.cert, p.key) {
			t.Errorf("%s does not fit its key: %v", cert, err)
		}
	}
}

// TestOneRenewsAtATime: servers that share a folder do not both replace its authority.
func TestOneRenewsAtATime(t *testing.T) {
	now := time.Now()
	later := now.Add(caLife*2/3 + time.Hour)
	for range 20 {
		path := t.TempDir()
		var done sync.WaitGroup
		for _, d := range []*Dir{open(t, path, now), open(t, path, now), open(t, path, now), open(t, path, now)} {
			done.Go(func() {
				if _, err := d.Renew(later, true); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		list, err := readCertificates(filepath.Join(path, "ca.crt"))
		if err != nil || len(list) != 2 {
			t.Fatalf("%d authorities: %v", len(list), err)
		}
		for _, name := range []string{"ca", "serving", "admin"} {
			if p, err := loadPair(filepath.Join(path, name+".crt"), filepath.Join(path, name+".key")); err != nil || !fits(p.cert, p.key) {
				t.Fatalf("%s.crt does not fit its key: %v", name, err)
			}
		}
	}
}

// TestNamesOfAnother: servers that share a folder and have names of their own come to one
// certificate for all of them, and leave it alone.
func TestNamesOfAnother(t *testing.T) {
	now := time.Now()
	path := t.TempDir()
	var dirs []*Dir
	for _, host := range []string{"one.example", "two.example"} {
		d, err := Open(path, Options{Hosts: []string{host}, IPs: []net.IP{net.IPv4(10, 0, 0, byte(len(dirs)))}, ServerURL: "https://127.0.0.1:6443", Now: now})
		if err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, d)
	}
	renewals := 0
	for range 10 {
		for _, d := range dirs {
			changed, err := d.Renew(now, false)
			if err != nil {
				t.Fatal(err)
			}
			renewals += len(changed)
		}
	}
	list, err := readCertificates(dirs[0].ServingCert)
	if err != nil || list[0].VerifyHostname("one.example") != nil || list[0].VerifyHostname("two.example") != nil || list[0].VerifyHostname("10.0.0.1") != nil || renewals != 1 {
		t.Errorf("%d renewals: %v", renewals, err)
	}
}

// TestKubeconfigOfAnother: a renewal leaves the server in the kubeconfig alone.
func TestKubeconfigOfAnother(t *testing.T) {
	now := time.Now()
	d := open(t, t.TempDir(), now)
	other, err := Open(d.Path, Options{ServerURL: "https://127.0.0.1:7443", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := d.Renew(now, true); err != nil || len(changed) > 0 {
		t.Errorf("changed: %q %v", changed, err)
	}
	if text := contents(t, other)["admin.kubeconfig"]; !strings.Contains(text, "https://127.0.0.1:7443") {
		t.Error(text)
	}
}
