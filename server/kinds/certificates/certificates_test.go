package certificates_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/kinds/certificates"
	"github.com/rowlock/rowlock/server/request"
)

func signingRequest(t testing.TB) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: "example.org/signer", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	}}
}

func TestRequestor(t *testing.T) {
	r := signingRequest(t)
	r.Spec.Username, r.Spec.Groups = "faked", []string{"system:masters"}
	scope := request.NewScope(nil, r.CreationTimestamp.Time)
	scope.User = &authx.Identity{Name: "ann", UID: "u", Groups: []string{"devs"}, Extra: map[string][]string{"k": {"v"}}}
	certificates.CertificateSigningRequest(off).PrepareForCreate(request.With(context.Background(), scope), r)
	if r.Spec.Username != "ann" || r.Spec.UID != "u" || len(r.Spec.Groups) != 1 || r.Spec.Groups[0] != "devs" || len(r.Spec.Extra["k"]) != 1 {
		t.Errorf("asked by %+v", r.Spec)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*certificatesv1.CertificateSigningRequest)
		fault  string
	}{
		{"fine", func(*certificatesv1.CertificateSigningRequest) {}, ""},
		{"no request", func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Request = nil }, "PEM block type must be"},
		{"bad signature", func(r *certificatesv1.CertificateSigningRequest) {
			block, _ := pem.Decode(r.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			r.Spec.Request = pem.EncodeToMemory(block)
		}, "spec.request"},
		{"usage", func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Usages[0] = "fly" }, `Unsupported value: "fly"`},
		{"signer", func(r *certificatesv1.CertificateSigningRequest) { r.Spec.SignerName = "nodomain" }, "must be a fully qualified domain"},
		{"short label", func(r *certificatesv1.CertificateSigningRequest) { r.Spec.SignerName = "a/b" }, "at least two segments"},
		{"soon", func(r *certificatesv1.CertificateSigningRequest) {
			s := int32(599)
			r.Spec.ExpirationSeconds = &s
		}, "less than 600 seconds"},
	} {
		r := signingRequest(t)
		c.change(r)
		err := certificates.CertificateSigningRequest(off).Validate(context.Background(), r).ToAggregate()
		if c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.fault)
		}
	}
}

// withModulus returns a request with an RSA key of so many bits, and a signature that is none.
func withModulus(t *testing.T, bits uint) []byte {
	t.Helper()
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	key, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Sub(n, big.NewInt(1)), E: 65537})
	if err != nil {
		t.Fatal(err)
	}
	subject, err := asn1.Marshal(pkix.Name{CommonName: "a"}.ToRDNSequence())
	if err != nil {
		t.Fatal(err)
	}
	type content struct {
		Version      int
		Subject, Key asn1.RawValue
		Attributes   []asn1.RawValue `asn1:"tag:0"`
	}
	der, err := asn1.Marshal(struct {
		Content   content
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		content{0, asn1.RawValue{FullBytes: subject}, asn1.RawValue{FullBytes: key}, nil},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: make([]byte, bits/8), BitLength: int(bits)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// TestHugeKeys: a signature is not checked with a key of a size that makes it take long.
func TestHugeKeys(t *testing.T) {
	for bits, fault := range map[uint]string{4096: "verification error", 8 << 20: "RSA keys of more than 16384 bits"} {
		r := signingRequest(t)
		r.Spec.Request = withModulus(t, bits)
		err := certificates.CertificateSigningRequest(off).Validate(context.Background(), r).ToAggregate()
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%d bits: %.300v, want %q", bits, err, fault)
		}
	}
}

func TestApproval(t *testing.T) {
	ctx := context.Background()
	old := signingRequest(t)
	approved := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}
	r := old.DeepCopy()
	r.Status.Conditions = append(r.Status.Conditions, approved)
	r.Status.Certificate = []byte("x")
	certificates.CertificateSigningRequestApproval(off).PrepareForUpdate(ctx, r, old)
	if errs := certificates.CertificateSigningRequestApproval(off).ValidateUpdate(ctx, r, old); len(errs) > 0 {
		t.Fatal(errs)
	}
	if r.Status.Certificate != nil || r.Status.Conditions[0].LastTransitionTime.IsZero() {
		t.Errorf("approved as %+v", r.Status)
	}
	undone := r.DeepCopy()
	undone.Status.Conditions = nil
	if errs := certificates.CertificateSigningRequestApproval(off).ValidateUpdate(ctx, undone, r); len(errs) != 1 {
		t.Errorf("an approval was taken back: %v", errs)
	}
	forged := old.DeepCopy()
	forged.Status.Conditions = append(forged.Status.Conditions, approved)
	certificates.CertificateSigningRequest(off).Status.PrepareForUpdate(ctx, forged, old)
	if errs := certificates.CertificateSigningRequest(off).Status.ValidateUpdate(ctx, forged, old); len(errs) != 1 {
		t.Errorf("approved through the status: %v", errs)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(signingRequest(f).Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAA==\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{Request: text}}
		r.Status.Certificate = text
		certificates.CertificateSigningRequest(off).Validate(context.Background(), r)
	})
}

// off enables no gate, in release 1.32.
func off(string) bool { return false }
