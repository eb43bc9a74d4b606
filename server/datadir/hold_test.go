package datadir

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestServersThatShareAFolder: the kubeconfig stays that of the first server, which both certificates name, until
// the first has ended.
func TestServersThatShareAFolder(t *testing.T) {
	path := t.TempDir()
	serve := func(url, host string) *Dir {
		t.Helper()
		d, err := Open(path, Options{ServerURL: url, Hosts: []string{host}, Now: time.Now(), Serves: true, Quick: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	}
	kubeconfig := func(d *Dir, want string, shared bool) {
		t.Helper()
		text, err := os.ReadFile(d.AdminKubeconfig)
		if err != nil || !strings.Contains(string(text), "server: "+want+"\n") || d.Shared != shared {
			t.Fatalf("the kubeconfig is %s, shared %t, %v; want %s", text, d.Shared, err, want)
		}
	}
	first := serve("https://127.0.0.1:1", "one.example")
	kubeconfig(first, "https://127.0.0.1:1", false)
	second := serve("https://127.0.0.1:2", "two.example")
	kubeconfig(second, "https://127.0.0.1:1", true)
	data, err := os.ReadFile(second.ServingCert)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one.example", "two.example"} {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	kubeconfig(serve("https://127.0.0.1:3", "three.example"), "https://127.0.0.1:3", false)
}
