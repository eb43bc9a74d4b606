package controllers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

func authority(t *testing.T, name string, until time.Time) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-time.Hour), NotAfter: until, IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c
}

func names(t *testing.T, text string) string {
	t.Helper()
	var all []string
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return strings.Join(all, " ")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c.Subject.CommonName)
	}
}

func TestTrustOfSeveralServers(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	gone, theirs, ours := authority(t, "gone", now.Add(-time.Second)), authority(t, "theirs", now.Add(time.Hour)), authority(t, "ours", now.Add(time.Hour))
	tr := &Trust{Clock: func() time.Time { return now }, Clients: func() []*x509.Certificate { return []*x509.Certificate{ours, ours} }}
	old := map[string]string{clientAuthorities: joined("", []*x509.Certificate{gone, theirs}, now.Add(-time.Minute)), "other": "stays"}
	if got := names(t, old[clientAuthorities]); got != "gone theirs" {
		t.Fatalf("before: %s", got)
	}
	data, err := tr.data(old)
	if err != nil {
		t.Fatal(err)
	}
	if got := names(t, data[clientAuthorities]); got != "theirs ours" {
		t.Errorf("authorities %q, want those of others that are valid, then ours once", got)
	}
	if data["other"] != "stays" || len(data) != 2 {
		t.Errorf("keys %v: without proxies only the client authorities are written", data)
	}

	tr.Proxy = func() ProxyTrust {
		return ProxyTrust{Authorities: []*x509.Certificate{ours}, User: []string{"X-Remote-User", "X-User"}, Groups: []string{"X-Remote-Group"}, Names: []string{"front"}}
	}
	if data, err = tr.data(map[string]string{proxyUser: `["X-Remote-User","X-Old"]`, clientAuthorities: "not PEM"}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		proxyUser: `["X-Remote-User","X-Old","X-User"]`, proxyGroups: `["X-Remote-Group"]`, proxyExtra: `[]`, proxyNames: `["front"]`, proxyUID: "",
	} {
		if data[key] != want {
			t.Errorf("%s: %s, want %s", key, data[key], want)
		}
	}
	if got := names(t, data[clientAuthorities]); got != "ours" {
		t.Errorf("authorities %q after a text that is not PEM", got)
	}
	if data, err = tr.data(map[string]string{proxyNames: `[]`}); err != nil || data[proxyNames] != "[]" {
		t.Errorf("names %s, %v: a server that takes any name stays able to", data[proxyNames], err)
	}
}
