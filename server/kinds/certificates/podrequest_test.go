package certificates_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds/certificates"
)

func newKey(t *testing.T, kind string) (key crypto.Signer) {
	t.Helper()
	var err error
	switch kind {
	case "rsa1024":
		t.Setenv("GODEBUG", "rsa1024min=0")
		key, err = rsa.GenerateKey(rand.Reader, 1024)
	case "rsa3072":
		key, err = rsa.GenerateKey(rand.Reader, 3072)
	case "p224":
		key, err = ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	case "p256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func requestOf(t *testing.T, key crypto.Signer) *certificatesv1beta1.PodCertificateRequest {
	t.Helper()
	r := &certificatesv1beta1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "n"}}
	r.Spec = certificatesv1beta1.PodCertificateRequestSpec{SignerName: "example.com/s", PodName: "p", PodUID: "u", ServiceAccountName: "a", ServiceAccountUID: "b", NodeName: "n", NodeUID: "m"}
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	r.Spec.StubPKCS10Request = stub
	certificates.PodCertificateRequest.Default(r)
	return r
}

// TestIssuedChains: an issued certificate is for the key of the request, for the times in it, and final.
func TestIssuedChains(t *testing.T) {
	key, other := newKey(t, "ed25519"), newKey(t, "ed25519")
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UTC()
		leaf := func(to crypto.Signer, life time.Duration, names ...string) string {
			c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(life), DNSNames: names}
			der, err := x509.CreateCertificate(rand.Reader, c, c, to.Public(), other)
			if err != nil {
				t.Fatal(err)
			}
			return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
		}
		day := 24 * time.Hour
		good := leaf(key, day)
		type status = certificatesv1beta1.PodCertificateRequestStatus
		for name, c := range map[string]struct {
			chain  string
			change func(*status)
			want   string
		}{
			"a leaf":                  {good, nil, ""},
			"a leaf and its issuer":   {good + leaf(other, day), nil, ""},
			"no certificate":          {"", nil, "must contain at least one certificate"},
			"a key":                   {"-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n", nil, "consist entirely of CERTIFICATE PEM blocks"},
			"no X.509":                {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", nil, "leaf certificate does not parse"},
			"an issuer that is none":  {good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", nil, "intermediate certificate does not parse"},
			"a key after the leaf":    {good + "-----BEGIN KEY-----\nAAAA\n-----END KEY-----\n", nil, "PEM blocks"},
			"for another key":         {leaf(other, day), nil, "not issued to the requested public key"},
			"a name with two dots":    {leaf(key, day, "a..b"), nil, "should not contain '..'"},
			"a name that ends in one": {leaf(key, day, "a.b."), nil, "should not start or end with '.'"},
			"too short":               {leaf(key, time.Minute*30), func(s *status) { s.NotAfter.Time = now.Add(30 * time.Minute) }, "lifetime must be >= 1 hour"},
			"too long":                {leaf(key, 2*day), func(s *status) { s.NotAfter.Time = now.Add(2 * day) }, "lifetime must be <= spec.maxExpirationSeconds (86400)"},
			"no beginning":            {good, func(s *status) { s.NotBefore = nil }, "status.notBefore: Required value"},
			"no end":                  {good, func(s *status) { s.NotAfter = nil }, "status.notAfter: Required value"},
			"no time of renewal":      {good, func(s *status) { s.BeginRefreshAt = nil }, "status.beginRefreshAt: Required value"},
			"another beginning":       {good, func(s *status) { s.NotBefore.Time = now.Add(time.Second) }, "NotBefore time encoded"},
			"another end":             {good, func(s *status) { s.NotAfter.Time = now.Add(time.Hour) }, "NotAfter time encoded"},
			"renewal too early":       {good, func(s *status) { s.BeginRefreshAt.Time = now.Add(time.Minute) }, "at least 10 minutes after"},
			"renewal too late":        {good, func(s *status) { s.BeginRefreshAt.Time = now.Add(day) }, "at least 10 minutes before"},
			"a chain that is denied":  {good, func(s *status) { s.Conditions[0].Type = "Denied" }, "must be empty when denying"},
			"a chain without an end":  {good, func(s *status) { s.Conditions = nil }, "status is immutable unless"},
			"too large":               {strings.Repeat(" ", 101<<10), nil, "Too long"},
		} {
			old := requestOf(t, key)
			r := old.DeepCopy()
			at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
			r.Status = status{CertificateChain: c.chain, NotBefore: at(0), NotAfter: at(day), BeginRefreshAt: at(day / 2),
				Conditions: []metav1.Condition{{Type: "Issued", Status: metav1.ConditionTrue, Reason: "Signed", Message: "here it is", LastTransitionTime: metav1.Time{Time: now}}}}
			if c.change != nil {
				c.change(&r.Status)
			}
			got := certificates.PodCertificateRequest.Status.ValidateUpdate(context.Background(), r, old).ToAggregate()
			if c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, got, c.want)
			}
			if got != nil {
				continue
			}
			again := r.DeepCopy()
			again.Status.Conditions[0].Reason = "Another"
			if errs := certificates.PodCertificateRequest.Status.ValidateUpdate(context.Background(), again, r); !strings.Contains(errs.ToAggregate().Error(), "immutable after") {
				t.Errorf("%s is changed later: %v", name, errs)
			}
		}
	})
}

// TestRequestedKeys: which keys a pod may have certified.
func TestRequestedKeys(t *testing.T) {
	for kind, want := range map[string]string{"ed25519": "", "p256": "", "rsa3072": "", "p224": "spec.stubPKCS10Request: Invalid value", "rsa1024": "spec.stubPKCS10Request: Invalid value"} {
		key := newKey(t, kind)
		stub := requestOf(t, key)
		proof := stub.DeepCopy()
		proof.Spec.StubPKCS10Request, proof.Spec.PKIXPublicKey, proof.Spec.ProofOfPossession = nil, publicKey(t, key), signed(t, key, "u")
		got := certificates.PodCertificateRequest.Validate(t.Context(), stub).ToAggregate()
		if want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("%s: %v, want %q", kind, got, want)
		}
		got, want = certificates.PodCertificateRequest.Validate(t.Context(), proof).ToAggregate(), strings.Replace(want, "stubPKCS10Request", "pkixPublicKey", 1)
		if want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("%s with a proof: %v, want %q", kind, got, want)
		}
		if proof.Spec.ProofOfPossession = signed(t, key, "another"); certificates.PodCertificateRequest.Validate(t.Context(), proof) == nil {
			t.Errorf("%s: the proof of another pod is accepted", kind)
		}
	}
}

func publicKey(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// signed returns the signature with which a pod's node agent proves that it has a key.
func signed(t *testing.T, key crypto.Signer, text string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(text))
	message, options := sum[:], crypto.SignerOpts(crypto.SHA256)
	switch key.(type) {
	case ed25519.PrivateKey:
		message, options = []byte(text), crypto.Hash(0)
	case *rsa.PrivateKey:
		options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	}
	signature, err := key.Sign(rand.Reader, message, options)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}
