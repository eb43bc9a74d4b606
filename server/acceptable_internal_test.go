package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"
)

// selfMade returns a self-signed certificate for a common name and DNS names.
func selfMade(t *testing.T, name string, more ...string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: more,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// handshake shakes hands, and returns the authorities that the server names and its error.
func handshake(t *testing.T, config *tls.Config, shown tls.Certificate) (named []string, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // not a pipe: a server that refuses writes while the client still does
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		client := tls.Client(theirs, &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for _, raw := range info.AcceptableCAs {
				var rdn pkix.RDNSequence
				if _, err := asn1.Unmarshal(raw, &rdn); err != nil {
					return nil, err
				}
				var n pkix.Name
				n.FillFromRDNSequence(&rdn)
				named = append(named, n.CommonName)
			}
			return &shown, nil
		}})
		if client.HandshakeContext(t.Context()) == nil {
			_, _ = client.Read(make([]byte, 1)) // with TLS 1.3 the refusal arrives after the client's end of the handshake
		}
	}()
	err = tls.Server(ours, config).HandshakeContext(t.Context())
	ours.Close()
	<-done
	return named, err
}

// TestAcceptable: a handshake names the authorities as they are, and makes a
// configuration for each version of them alone.
func TestAcceptable(t *testing.T) {
	pool := func(names ...string) *x509.CertPool {
		p := x509.NewCertPool()
		for _, n := range names {
			p.AddCert(selfMade(t, n).Leaf)
		}
		return p
	}
	now := pool("users", "proxies")
	base := &tls.Config{Certificates: []tls.Certificate{selfMade(t, "server")}, ClientAuth: tls.RequestClientCert}
	config := base.Clone()
	config.GetConfigForClient = acceptable(base, func() *x509.CertPool { return now })
	for _, want := range [][]string{{"users", "proxies"}, {"new users"}} {
		named, err := handshake(t, config, selfMade(t, "jane"))
		if err != nil || !slices.Equal(named, want) {
			t.Errorf("%q, want %q: %v", named, want, err)
		}
		one, _ := config.GetConfigForClient(nil)
		if two, _ := config.GetConfigForClient(nil); one != two {
			t.Error("each handshake has a configuration of its own")
		}
		now = pool("new users")
	}
}

// TestShortChain: the certificates of a client are bounded in number and size.
func TestShortChain(t *testing.T) {
	config := &tls.Config{Certificates: []tls.Certificate{selfMade(t, "server")}, ClientAuth: tls.RequestClientCert, VerifyPeerCertificate: shortChain}
	chain := func(n int) tls.Certificate {
		c := selfMade(t, "jane")
		for len(c.Certificate) < n {
			c.Certificate = append(c.Certificate, c.Certificate[0])
		}
		return c
	}
	names := make([]string, 6000)
	for i := range names {
		names[i] = "name-of-a-server"
	}
	for what, tc := range map[string]struct {
		shown tls.Certificate
		good  bool
	}{
		"one":        {chain(1), true},
		"ten":        {chain(maxChain), true},
		"eleven":     {chain(maxChain + 1), false},
		"some names": {selfMade(t, "jane", names[:500]...), true},
		"more names": {selfMade(t, "jane", names[:1000]...), false},
		"many names": {selfMade(t, "jane", names...), false},
	} {
		if _, err := handshake(t, config, tc.shown); (err == nil) != tc.good {
			t.Errorf("%s: %v", what, err)
		}
	}
}
