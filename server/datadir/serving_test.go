package datadir

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestServingTogether: servers that start at once with one folder have one pair.
func TestServingTogether(t *testing.T) {
	for range 10 {
		dir := filepath.Join(t.TempDir(), "certs")
		cert, key := filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
		var servers sync.WaitGroup
		for range 8 {
			servers.Go(func() {
				if err := Serving(cert, key, Options{Now: time.Now()}); err != nil {
					t.Error(err)
				}
				if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
					t.Error(err)
				}
			})
		}
		servers.Wait()
	}
}

// TestServing: missing files are made, and trusted by clients with the file; existing ones stay.
func TestServing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	cert, key := filepath.Join(dir, "apiserver.crt"), filepath.Join(dir, "apiserver.key")
	o := Options{Hosts: []string{"here.example"}, Now: time.Now()}
	if err := Serving(cert, key, o); err != nil {
		t.Fatal(err)
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
	list, err := readCertificates(cert)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"here.example", "localhost", "127.0.0.1"} {
		if err := list[0].VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if err := verify(list[:1], poolOf(t, cert), x509.ExtKeyUsageServerAuth, o.Now); err != nil {
		t.Error(err)
	}
	before, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	o.Hosts = []string{"elsewhere.example"}
	if err := Serving(cert, key, o); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(cert); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a certificate that was there is replaced: %v", err)
	}
	for _, missing := range []string{cert, key} {
		if err := os.Rename(missing, missing+".away"); err != nil {
			t.Fatal(err)
		}
		if err := Serving(cert, key, o); err == nil {
			t.Errorf("without %s nothing is wrong", missing)
		}
		if err := os.Rename(missing+".away", missing); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQuickSigningKey(t *testing.T) {
	for _, quick := range []bool{false, true} {
		d, err := Open(t.TempDir(), Options{Now: time.Now(), Quick: quick})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(d.ServiceAccount)
		if err != nil {
			t.Fatal(err)
		}
		key, err := parseKey(text)
		if err != nil {
			t.Fatal(err)
		}
		_, slow := key.(*rsa.PrivateKey)
		_, fast := key.(*ecdsa.PrivateKey)
		if slow == quick || fast != quick {
			t.Errorf("quick is %v: the key is %T", quick, key)
		}
	}
}
