package credential

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Account requests tokens of a service account.
type Account struct {
	Namespace, Name string
	Audiences       []string      // none: the API
	Life            time.Duration // 0: the server's default
}

// ID implements Source.
func (a Account) ID() string {
	return fmt.Sprintf("account %s/%s %q %s", a.Namespace, a.Name, a.Audiences, a.Life)
}

// Fetch implements Source.
func (a Account) Fetch(ctx context.Context, s *Server) (*Credential, error) {
	req := &authenticationv1.TokenRequest{
		TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"},
		Spec:     authenticationv1.TokenRequestSpec{Audiences: a.Audiences},
	}
	if a.Life > 0 {
		req.Spec.ExpirationSeconds = new(int64(a.Life / time.Second))
	}
	now := s.now()
	path := "/api/v1/namespaces/" + a.Namespace + "/serviceaccounts/" + a.Name + "/token"
	if err := s.call(ctx, http.MethodPost, path, req, req); err != nil {
		return nil, fmt.Errorf("asking for a token of service account %s/%s: %w", a.Namespace, a.Name, err)
	}
	return &Credential{Token: req.Status.Token, Issued: now, Expires: req.Status.ExpirationTimestamp.Time}, nil
}

// Node requests the client certificate of a node.
type Node struct {
	Name string
	Wait time.Duration // between looks at whether the request has been signed; 0: 500 ms
}

// ID implements Source.
func (n Node) ID() string { return "node " + n.Name }

// Fetch implements Source. It waits until the request is signed, or refused, or ctx ends.
func (n Node) Fetch(ctx context.Context, s *Server) (*Credential, error) {
	key, request, err := n.request()
	if err != nil {
		return nil, err
	}
	csr := &certificatesv1.CertificateSigningRequest{
		TypeMeta:   metav1.TypeMeta{Kind: "CertificateSigningRequest", APIVersion: "certificates.k8s.io/v1"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	if err := s.call(ctx, http.MethodPost, path, csr, csr); err != nil {
		return nil, fmt.Errorf("asking for a certificate of node %s: %w", n.Name, err)
	}
	wait := n.Wait
	wait = cmp.Or(wait, 500*time.Millisecond)
	for {
		if c, err := outcome(csr, key); c != nil || err != nil {
			return c, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("request %s has not been signed: %w", csr.Name, ctx.Err())
		case <-time.After(wait):
		}
		if err := s.call(ctx, http.MethodGet, path+"/"+csr.Name, nil, csr); err != nil {
			return nil, fmt.Errorf("looking at request %s: %w", csr.Name, err)
		}
	}
}

// request makes a key and a certificate request, both as PEM.
func (n Node) request() (key string, request []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", nil, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + n.Name, Organization: []string{"system:nodes"}},
	}, private)
	if err != nil {
		return "", nil, err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}), nil
}

// outcome is nil, nil while a request is open.
func outcome(csr *certificatesv1.CertificateSigningRequest, key string) (*Credential, error) {
	for _, c := range csr.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return nil, fmt.Errorf("request %s is %s: %s", csr.Name, strings.ToLower(string(c.Type)), c.Message)
		}
	}
	if len(csr.Status.Certificate) == 0 {
		return nil, nil
	}
	block, _ := pem.Decode(csr.Status.Certificate)
	if block == nil {
		return nil, errors.New("the signed certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	return &Credential{Certificate: string(csr.Status.Certificate), Key: key, Issued: cert.NotBefore, Expires: cert.NotAfter}, nil
}
