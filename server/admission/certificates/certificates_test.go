package certificates_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/certificates"
	"github.com/rowlock/rowlock/server/kinds"
)

var resource = &kinds.Resource{Group: "certificates.k8s.io", Version: "v1", Plural: "certificatesigningrequests"}

// grants allows the pairs of verb and signer name that it lists.
type grants []string

func (g grants) Authorize(_ context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	for _, allowed := range g {
		if allowed == a.Verb+" "+a.Name && a.Resource == "signers" && a.APIGroup == "certificates.k8s.io" && a.ResourceRequest {
			return authx.Allow, "", nil
		}
	}
	return authx.NoOpinion, "", nil
}

func csr(t *testing.T, signer string, organization ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jan", Organization: organization}}, key)
	if err != nil {
		t.Fatal(err)
	}
	r := &certificatesv1.CertificateSigningRequest{}
	r.Name = "a"
	r.Spec.SignerName = signer
	r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return r
}

func TestSubjectRestriction(t *testing.T) {
	const refusal = `certificatesigningrequests.certificates.k8s.io "a" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed`
	for _, c := range []struct{ signer, organization, want string }{
		{"kubernetes.io/kube-apiserver-client", "devs", ""},
		{"kubernetes.io/kube-apiserver-client", "system:masters", refusal},
		{"example.org/web", "system:masters", ""},
	} {
		a := &admission.Attributes{Operation: admission.Create, Resource: resource, Object: csr(t, c.signer, "x", c.organization)}
		err := certificates.SubjectRestriction().Validate(context.Background(), a)
		if got := text(err); got != c.want {
			t.Errorf("%s %s: %q", c.signer, c.organization, got)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestApprovalAndSigning(t *testing.T) {
	approved := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}
	for _, c := range []struct {
		name, sub string
		grants    grants
		change    func(*certificatesv1.CertificateSigningRequest)
		want      string
	}{
		{"by name", "approval", grants{"approve example.org/web"}, nil, ""},
		{"by domain", "approval", grants{"approve example.org/*"}, nil, ""},
		{"other domain", "approval", grants{"approve example.com/*", "sign example.org/web"}, nil, `not permitted to approve requests with signerName "example.org/web"`},
		{"nothing changed", "status", nil, nil, ""},
		{"certificate", "status", nil, func(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = []byte("x") }, `not permitted to sign requests with signerName "example.org/web"`},
		{"signed", "status", grants{"sign example.org/*"}, func(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = []byte("x") }, ""},
		{"condition", "status", grants{"approve example.org/web"}, func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = append(r.Status.Conditions, approved)
		}, "not permitted to sign"},
		{"signer of the new object does not count", "status", grants{"sign own.org/web"}, func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName, r.Status.Certificate = "own.org/web", []byte("x")
		}, "not permitted to sign"},
		{"the object itself", "", nil, func(r *certificatesv1.CertificateSigningRequest) { r.Labels = map[string]string{"a": "b"} }, ""},
	} {
		old := csr(t, "example.org/web")
		obj := old.DeepCopy()
		if c.change != nil {
			c.change(obj)
		}
		a := &admission.Attributes{Operation: admission.Update, Resource: resource, Subresource: c.sub, Name: "a", Object: obj, Old: old, User: &authx.Identity{Name: "u"}}
		err := admission.NewChain(certificates.Approval(c.grants), certificates.Signing(c.grants)).Validate(context.Background(), a)
		if (c.want == "") != (err == nil) || !strings.Contains(text(err), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
