package credential

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// cluster issues tokens and certificates, and counts them.
type cluster struct {
	t       *testing.T
	now     time.Time
	life    time.Duration
	issued  int
	revoked map[string]bool
	looks   int // at a request for a certificate
	verdict certificatesv1.RequestConditionType
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.URL.Path == "/version":
		if c.revoked[token] {
			w.WriteHeader(http.StatusUnauthorized)
		}
	case token != "base":
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{Message: "not you"})
	case r.URL.Path == "/api/v1/namespaces/ns/serviceaccounts/app/token" && r.Method == http.MethodPost:
		var req authenticationv1.TokenRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			c.t.Error(err)
		}
		c.issued++
		req.Status.Token, req.Status.ExpirationTimestamp = fmt.Sprintf("token-%d", c.issued), metav1.NewTime(c.now.Add(c.life))
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(req)
	case strings.HasPrefix(r.URL.Path, "/apis/certificates.k8s.io/v1/certificatesigningrequests"):
		c.sign(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// sign answers a request, and decides on it at the third look.
func (c *cluster) sign(w http.ResponseWriter, r *http.Request) {
	csr := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "node-csr-x"}}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&csr); err != nil {
			c.t.Error(err)
		}
		block, _ := pem.Decode(csr.Spec.Request)
		request, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || request.Subject.CommonName != "system:node:n1" || request.Subject.Organization[0] != "system:nodes" {
			c.t.Errorf("%v %v", request, err)
		}
		csr.Name = "node-csr-x"
	}
	if c.looks++; c.looks >= 3 {
		if csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: c.verdict, Message: "so it is"}}; c.verdict == certificatesv1.CertificateApproved {
			csr.Status.Certificate = c.certificate()
		}
	}
	_ = json.NewEncoder(w).Encode(csr)
}

func (c *cluster) certificate() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: c.now, NotAfter: c.now.Add(c.life)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func connect(t *testing.T, base string) (*cluster, *Server) {
	t.Helper()
	c := &cluster{t: t, now: time.Now(), life: 100 * time.Minute, revoked: map[string]bool{}, verdict: certificatesv1.CertificateApproved}
	srv := httptest.NewTLSServer(c)
	t.Cleanup(srv.Close)
	s, err := Connect(&rest.Config{Host: srv.URL, BearerToken: base, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return c.now }
	return c, s
}

// TestKept: a credential is fetched again when most of its lifetime is over, when the server refuses it, and
// when the cached one cannot be trusted.
func TestKept(t *testing.T) {
	c, s := connect(t, "base")
	dir := filepath.Join(t.TempDir(), "cache")
	source := Account{Namespace: "ns", Name: "app"}
	want := func(token string) {
		t.Helper()
		got, err := Get(t.Context(), source, s, dir)
		if err != nil || got.Token != token {
			t.Fatalf("%+v %v, want %s", got, err, token)
		}
	}
	file := func() string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("%v %v", files, err)
		}
		return files[0]
	}
	want("token-1")
	want("token-1")
	c.now = c.now.Add(79 * time.Minute)
	want("token-1")
	c.now = c.now.Add(time.Minute)
	want("token-2")
	c.revoked["token-2"] = true
	want("token-3")
	info, err := os.Stat(file())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info.Mode(), err)
	}
	if err := os.Chmod(file(), 0o640); err != nil {
		t.Fatal(err)
	}
	want("token-4")
	for i, text := range []string{"", "nonsense", "{}", `{"certificate":"x"}`} {
		if err := os.WriteFile(file(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want(fmt.Sprintf("token-%d", 5+i))
	}
	other := Account{Namespace: "ns", Name: "app", Audiences: []string{"vault"}}
	if got, err := Get(t.Context(), other, s, dir); err != nil || got.Token != "token-9" {
		t.Fatalf("for another audience: %+v %v", got, err)
	}
	if got, err := Get(t.Context(), source, s, ""); err != nil || got.Token != "token-10" {
		t.Fatalf("without a folder: %+v %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	_, s := connect(t, "wrong")
	if _, err := Get(t.Context(), Account{Namespace: "ns", Name: "app"}, s, ""); err == nil || err.Error() != "asking for a token of service account ns/app: not you" {
		t.Fatal(err)
	}
}

func TestNode(t *testing.T) {
	c, s := connect(t, "base")
	node := Node{Name: "n1", Wait: time.Millisecond}
	got, err := Get(t.Context(), node, s, "")
	if err != nil || got.Token != "" || !strings.HasPrefix(got.Key, "-----BEGIN PRIVATE KEY") || got.Expires.Unix() != c.now.Add(c.life).Unix() {
		t.Fatalf("%+v %v", got, err)
	}
	c.looks, c.verdict = 0, certificatesv1.CertificateDenied
	if _, err := Get(t.Context(), node, s, ""); err == nil || err.Error() != "request node-csr-x is denied: so it is" {
		t.Fatal(err)
	}
	c.looks = -1 << 30
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Get(ctx, node, s, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

func TestExchange(t *testing.T) {
	for text, want := range map[string]string{
		"": "client.authentication.k8s.io/v1",
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1","spec":{"interactive":false}}`: "client.authentication.k8s.io/v1beta1",
		`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1alpha1"}`:                             "",
		`{"kind":"Pod","apiVersion":"client.authentication.k8s.io/v1"}`:                                              "",
		`nonsense`: "",
	} {
		info, err := ParseInfo(text)
		if (err == nil) != (want != "") || err == nil && info.APIVersion != want {
			t.Errorf("%s: %v %v", text, info, err)
		}
	}
	var out bytes.Buffer
	if err := Write(&out, "client.authentication.k8s.io/v1", &Credential{Token: "t", Expires: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	const want = `{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false},"status":{"expirationTimestamp":"1970-01-01T00:00:00Z","token":"t"}}` + "\n"
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
