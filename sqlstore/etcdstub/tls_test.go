package etcdstub_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore/etcdstub"
)

// pair writes a certificate for 127.0.0.1, which is its own authority, and its key.
func pair(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestHTTPS(t *testing.T) {
	dir := t.TempDir()
	serverCert, serverKey := pair(t, dir, "server")
	clientCert, clientKey := pair(t, dir, "client")
	otherCert, otherKey := pair(t, dir, "other")
	p := start(t, etcdstub.Config{
		Dir: filepath.Join(dir, "data"), Clients: []string{freeURL(t, "https")}, TLS: etcdstub.TLS{CertFile: serverCert, KeyFile: serverKey, CAFile: clientCert},
	})
	if _, err := etcdstub.Find(t.Context(), []string{p.url}, etcdstub.TLS{CertFile: clientCert, KeyFile: clientKey, CAFile: serverCert}); err != nil {
		t.Error(err)
	}
	// Permanent failures are not retried.
	for want, files := range map[string]etcdstub.TLS{
		"certificate required":             {CAFile: serverCert},
		"remote error: tls":                {CertFile: otherCert, KeyFile: otherKey, CAFile: serverCert},
		"certificate signed by unknown":    {CertFile: clientCert, KeyFile: clientKey, CAFile: otherCert},
		"no such file":                     {CAFile: filepath.Join(dir, "none")},
		"there is no certificate in it":    {CAFile: serverKey},
		"private key does not match publi": {CertFile: clientCert, KeyFile: otherKey},
	} {
		if _, err := etcdstub.Find(t.Context(), []string{p.url}, files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", files, err, want)
		}
	}
}
