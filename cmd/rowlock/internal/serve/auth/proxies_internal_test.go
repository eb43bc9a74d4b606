package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/datadir"
)

// TestProxiesApart: a certificate that is an authority of clients and of authenticating proxies is refused.
func TestProxiesApart(t *testing.T) {
	dir := t.TempDir()
	authority := func(name string) (path string, certificate []byte) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		path, certificate = filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if err := os.WriteFile(path, certificate, 0o600); err != nil {
			t.Fatal(err)
		}
		return path, certificate
	}
	own, ownPEM := authority("own")
	clients, clientsPEM := authority("clients")
	proxies, proxiesPEM := authority("proxies")
	bundle := func(name string, all ...[]byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bytes.Join(all, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for proxy, want := range map[string]string{
		"":                                     "",
		proxies:                                "",
		bundle("both", proxiesPEM, clientsPEM): "--requestheader-client-ca-file and --client-ca-file contain overlapping certificates",
		bundle("mine", proxiesPEM, ownPEM):     "--requestheader-client-ca-file and --data-dir contain overlapping certificates",
	} {
		o := &AuthenticationFlags{clientCA: clients, proxy: proxyOptions{ca: proxy}}
		err := o.apart(Config{Dir: &datadir.Dir{CACert: own}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", proxy, err, want)
		}
	}
}
