package datadir

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Credentials in memory work like those in a folder: the authorities are trusted for the serving
// certificate and those of clients, keys fit, and the kubeconfig holds the administrator's. No file
// is left anywhere, and after Close nothing can be read.
func TestInMemory(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	now := time.Now()
	d, err := InMemory(Options{ServerURL: "https://127.0.0.1:7", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temp); err != nil || runtime.GOOS == "linux" && len(left) > 0 {
		t.Errorf("on the disk are %v, %v", left, err)
	}
	front, err := d.FrontProxy(now)
	if err != nil {
		t.Fatal(err)
	}
	roots, fronts := poolOf(t, d.CACert), poolOf(t, front.CACert)
	for _, c := range []struct {
		cert, key string
		by        *x509.CertPool
		usage     x509.ExtKeyUsage
	}{
		{d.ServingCert, d.ServingKey, roots, x509.ExtKeyUsageServerAuth},
		{d.AdminCert, d.AdminKey, roots, x509.ExtKeyUsageClientAuth},
		{front.Cert, front.Key, fronts, x509.ExtKeyUsageClientAuth},
	} {
		if _, err := tls.LoadX509KeyPair(c.cert, c.key); err != nil {
			t.Error(err)
		}
		list, err := readCertificates(c.cert)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []time.Time{now, now.Add(9 * 365 * 24 * time.Hour)} {
			if err := verify(list, c.by, c.usage, at); err != nil {
				t.Errorf("%s at %s: %v", list[0].Subject, at, err)
			}
		}
	}
	if key, err := os.ReadFile(d.ServiceAccount); err != nil || !strings.Contains(string(key), "PRIVATE KEY") {
		t.Errorf("the key of service accounts is %q, %v", key, err)
	}
	config, err := os.ReadFile(d.AdminKubeconfig)
	if err != nil || !strings.Contains(string(config), "server: https://127.0.0.1:7\n") || !strings.Contains(string(config), "client-key-data: ") {
		t.Errorf("the kubeconfig is %q, %v", config, err)
	}
	if info, err := os.Stat(d.CAKey); err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the authority's key is %v, %v", info, err)
	}
	clientCertificate(t, d, now)
	if changed, err := d.Renew(now.Add(caLife), true); err != nil || len(changed) > 0 || len(d.Ends()) > 0 {
		t.Errorf("renewed are %q, %v", changed, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(d.CAKey); err == nil {
		t.Error("the authority's key can be read after its end")
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind are %v, %v", left, err)
	}
}

// Where there are no files without a place, a folder takes theirs, and goes with them.
func TestTemporaryFiles(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	paths, release, err := temporaryFiles([]string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := writeFile(path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind are %v, %v", left, err)
	}
}
