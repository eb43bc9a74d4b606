package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/webhook"
)

// TestDated: certificates of old sorts are counted where they are taken, and where a
// connection fails for them.
func TestDated(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	// ask makes a request of a server with a certificate, to the name old.example.
	ask := func(d *webhook.ObsoleteCertificates, trusting bool, sans ...string) {
		t.Helper()
		c := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "old.example"}, NotAfter: time.Now().Add(time.Hour), DNSNames: sans, IsCA: true, BasicConstraintsValid: true,
		}
		der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		s.StartTLS()
		defer s.Close()
		s.Config.ErrorLog = nil
		parsed, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(parsed)
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "old.example", InsecureSkipVerify: trusting}}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Get(s.URL)
		d.Observe(resp, err)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		} else if trusting || len(sans) > 0 {
			t.Errorf("%v", err)
		}
	}
	d := webhook.NewObsoleteCertificates("webhooks")
	registry := prometheus.NewRegistry()
	registry.MustRegister(d.Collectors()...)
	counts := func(names, sha1 float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		}
		if n, s := got["apiserver_webhooks_x509_missing_san_total"], got["apiserver_webhooks_x509_insecure_sha1_total"]; len(got) != 2 || n != names || s != sha1 {
			t.Errorf("%v; want %v without names and %v with SHA-1", got, names, sha1)
		}
	}
	ask(d, false, "old.example")
	counts(0, 0)
	ask(d, false)
	counts(1, 0)
	ask(d, true)
	counts(2, 0)
	shown := func(issuer string, by x509.SignatureAlgorithm) *http.Response {
		named := []pkix.Extension{{Id: []int{2, 5, 29, 17}}}
		leaf := &x509.Certificate{RawSubject: []byte("leaf"), RawIssuer: []byte(issuer), SignatureAlgorithm: by, Extensions: named}
		return &http.Response{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}}
	}
	d.Observe(shown("ca", x509.SHA1WithRSA), nil)
	d.Observe(shown("ca", x509.ECDSAWithSHA1), nil)
	counts(2, 2)
	d.Observe(shown("leaf", x509.SHA1WithRSA), nil) // signed by itself
	d.Observe(shown("ca", x509.SHA256WithRSA), nil)
	d.Observe(&http.Response{}, nil)
	d.Observe(nil, &net.OpError{Err: errors.New("refused")})
	d.Observe(nil, fmt.Errorf("tls: %w", x509.UnknownAuthorityError{}))
	counts(2, 2)
	(*webhook.ObsoleteCertificates)(nil).Observe(shown("ca", x509.SHA1WithRSA), nil)
}
