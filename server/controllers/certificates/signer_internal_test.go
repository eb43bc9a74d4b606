package certificates

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

func TestWhatKubeletsMayAskFor(t *testing.T) {
	node := pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}}
	client := []certificatesv1.KeyUsage{"digital signature", "client auth"}
	serving := []certificatesv1.KeyUsage{"server auth", "digital signature", "key encipherment"}
	ip := []net.IP{net.IPv4(10, 0, 0, 1)}
	for _, c := range []struct {
		name  string
		check func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error
		r     x509.CertificateRequest
		use   []certificatesv1.KeyUsage
		want  string
	}{
		{"client", checkKubeletClient, x509.CertificateRequest{Subject: node}, client, ""},
		{"client with names", checkKubeletClient, x509.CertificateRequest{Subject: node, IPAddresses: ip}, client, "IP subjectAltNames are not allowed"},
		{"client for a user", checkKubeletClient, x509.CertificateRequest{Subject: pkix.Name{CommonName: "a", Organization: node.Organization}}, client, "subject common name does not begin with system:node:"},
		{"client of another group too", checkKubeletClient, x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes", "system:masters"}}}, client, "subject organization is not system:nodes"},
		{"client that serves", checkKubeletClient, x509.CertificateRequest{Subject: node}, serving, "usages did not match [client auth digital signature key encipherment]"},
		{"no signature", checkKubeletClient, x509.CertificateRequest{Subject: node}, client[1:], "usages did not match [client auth digital signature key encipherment]"},
		{"serving", checkKubeletServing, x509.CertificateRequest{Subject: node, IPAddresses: ip}, serving, ""},
		{"serving nowhere", checkKubeletServing, x509.CertificateRequest{Subject: node}, serving, "DNS or IP subjectAltName is required"},
		{"serving as client", checkKubeletServing, x509.CertificateRequest{Subject: node, IPAddresses: ip}, client, "usages did not match [digital signature key encipherment server auth]"},
	} {
		got := ""
		if err := c.check(&c.r, c.use); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestLife(t *testing.T) {
	c := &Signer{MaxLife: time.Hour}
	for seconds, want := range map[int32]time.Duration{1: minLife, 1800: 30 * time.Minute, 7200: time.Hour} {
		if got := c.life(&seconds); got != want {
			t.Errorf("%d: %s", seconds, got)
		}
	}
	if c.life(nil) != time.Hour {
		t.Error("without a wish")
	}
}
