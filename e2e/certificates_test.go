package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, resources: [{resources: [secrets]}]}
- {level: RequestResponse, resources: [{group: certificates.k8s.io}]}
`

// TestCertificateApproval has a certificate approved and signed, checks it, and
// finds what happened in the audit log, but no secret.
func TestCertificateApproval(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	s := harness.StartT(t, harness.Options{Args: []string{"--audit-policy-file", policy, "--audit-log-path", log}})
	k := s.Kubectl(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jan", Organization: []string{"devs"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	request := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	manifest := filepath.Join(dir, "csr.yaml")
	text := "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: jan}\n" +
		"spec: {signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], expirationSeconds: 3600, request: " + request + "}\n"
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k.Run("create", "-f", manifest)
	k.Run("create", "secret", "generic", "s", "--from-literal=k=unspeakable")
	k.Run("certificate", "approve", "jan")
	k.Run("wait", "--for=jsonpath={.status.certificate}", "--timeout=2m", "csr/jan")
	data, err := base64.StdEncoding.DecodeString(k.Run("get", "csr", "jan", "-o", "jsonpath={.status.certificate}"))
	if err != nil {
		t.Fatal(err)
	}
	checkIssued(t, s, data)
	out, err := k.Try("", "certificate", "deny", "jan", "--as", "eve", "--as-group", "system:nobody")
	if err == nil || !strings.Contains(out+err.Error(), "forbidden") {
		t.Errorf("a stranger denies: %v, %s", err, out)
	}
	masters, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "eve", Organization: []string{"system:masters"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	powerful := strings.NewReplacer(request, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: masters})), "name: jan", "name: eve").Replace(text)
	if out, err := k.Try(powerful, "create", "-f", "-"); err == nil || !strings.Contains(out+err.Error(), "signer with system:masters group is not allowed") {
		t.Errorf("a request for system:masters: %v, %s", err, out)
	}
	checkAudit(t, log)
}

func checkIssued(t *testing.T, s *harness.Server, data []byte) {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("no certificate: %s", data)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := s.CA()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if cert.Subject.CommonName != "jan" || cert.IsCA || time.Until(cert.NotAfter) > time.Hour {
		t.Errorf("subject %s, CA %v, until %s", cert.Subject, cert.IsCA, cert.NotAfter)
	}
}

func checkAudit(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"unspeakable", base64.StdEncoding.EncodeToString([]byte("unspeakable"))} {
		if strings.Contains(string(data), secret) {
			t.Error("a secret is in the audit log")
		}
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(data)) {
		var e struct {
			Level, Stage, Verb string
			ObjectRef          struct{ Resource, Subresource string }
			ResponseStatus     struct{ Code int }
			ResponseObject     map[string]any
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.Stage == "RequestReceived" {
			t.Error("an omitted stage is there")
		}
		if e.ResponseStatus.Code/100 == 2 && (e.ResponseObject != nil) == (e.Level == "RequestResponse") {
			seen[e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource]++
		}
	}
	for _, want := range []string{"create secrets/", "create certificatesigningrequests/", "update certificatesigningrequests/approval"} {
		if seen[want] == 0 {
			t.Errorf("no event of %q in %v", want, seen)
		}
	}
}
