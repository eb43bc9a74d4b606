package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// access is a server with every way to come in, and what tests need to come in, or
// to try. Another server works on the same database.
type access struct {
	s, other     *harness.Server
	dir          string
	users, front *harness.Authority
	key          *rsa.PrivateKey // signs service account tokens
	issuer       *harness.Issuer
	hook         *tokenHook
	roots        *x509.CertPool

	mu      sync.Mutex
	clients map[*tls.Certificate]*http.Client
}

const authenticationConfig = `apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: %q, audiences: [app], certificateAuthority: %q}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    groups: {claim: groups, prefix: "oidc:"}
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')", message: no system users}
`

// TestAccess attacks one server in every way that is known to have worked somewhere.
func TestAccess(t *testing.T) {
	t.Parallel()
	a := startAccess(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *access)
	}{
		{"certificates", attackCertificates},
		{"account tokens", attackAccountTokens},
		{"revocation", revokeTokens},
		{"OIDC tokens", attackIssuerTokens},
		{"token webhook", attackTokenHook},
		{"proxy headers", attackProxyHeaders},
		{"nginx", throughNginx},
		{"credential plugin", plugIn},
		{"impersonation", attackImpersonation},
		{"escalation", attackEscalation},
		{"paths", attackPaths},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, a) })
	}
	for _, s := range []*harness.Server{a.s, a.other} {
		if log := s.Log(); strings.Contains(log, "panic") {
			t.Errorf("a server panicked:\n%s", log)
		}
	}
}

func startAccess(t *testing.T) *access {
	dir := t.TempDir()
	a := &access{dir: dir, users: harness.NewAuthority(t, "users"), front: harness.NewAuthority(t, "front"), clients: map[*tls.Certificate]*http.Client{}}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var err error
	if a.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	a.issuer, a.hook = harness.NewIssuer(t), startTokenHook(t, dir)
	key := write("sa.key", pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.key)}))
	args := []string{
		"--service-account-signing-key-file", key,
		"--client-ca-file", write("users.crt", a.users.PEM),
		"--requestheader-client-ca-file", write("front.crt", a.front.PEM), "--requestheader-allowed-names", "front-proxy",
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group", "--requestheader-extra-headers-prefix", "X-Remote-Extra-",
		"--authentication-config", write("authentication.yaml", fmt.Appendf(nil, authenticationConfig, a.issuer.URL, a.issuer.CA())),
		"--authentication-token-webhook-config-file", a.hook.kubeconfig, "--authentication-token-webhook-version", "v1", "--authentication-token-webhook-cache-ttl", "1s",
	}
	store := "sqlite:" + filepath.Join(dir, "shared.db")
	a.s = harness.StartT(t, harness.Options{Store: store, Args: args})
	a.other = harness.StartT(t, harness.Options{Store: store, Args: args})
	a.roots = x509.NewCertPool()
	for _, s := range []*harness.Server{a.s, a.other} {
		pem, err := os.ReadFile(filepath.Join(s.DataDir, "ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		a.roots.AppendCertsFromPEM(pem)
	}
	return a
}

// call is one request.
type call struct {
	method, path      string
	body, contentType string
	token             string
	cert              *tls.Certificate
	headers           http.Header
	other             bool // to the other server
}

// client uses HTTP/1.1, in which headers keep their spelling.
func (a *access) client(cert *tls.Certificate) *http.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[cert]; c != nil {
		return c
	}
	cfg := &tls.Config{RootCAs: a.roots}
	if cert != nil {
		// Sent whatever authorities the server names.
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	c := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: cfg, TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       2 * patience,
	}
	a.clients[cert] = c
	return c
}

func (a *access) do(t testing.TB, c call) (code int, body string) {
	t.Helper()
	s := a.s
	if c.other {
		s = a.other
	}
	if c.method == "" {
		c.method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(context.Background(), c.method, s.URL+c.path, bytes.NewReader([]byte(c.body)))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range c.headers {
		r.Header[name] = values
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.body != "" {
		if c.contentType == "" {
			c.contentType = "application/json"
		}
		r.Header.Set("Content-Type", c.contentType)
	}
	resp, err := a.client(c.cert).Do(r)
	if err != nil {
		t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return resp.StatusCode, string(answer)
}

// admin does something as an administrator, which must work.
func (a *access) admin(t testing.TB, method, path, body string) string {
	t.Helper()
	return a.s.Admin(t, a.client(nil), method, path, body)
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

// grant gives a user rules in a namespace, or everywhere if that is empty.
func (a *access) grant(t testing.TB, namespace, user, rules string) {
	t.Helper()
	a.s.Grant(t, a.client(nil), namespace, user, fmt.Sprintf(`{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%q}`, user), rules)
}

func (a *access) namespace(t testing.TB, name string) {
	t.Helper()
	a.admin(t, "POST", "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
}

// who returns the user of a request: the name, and the groups that are not those of everybody; or the code of
// its refusal. Anonymous requests may not ask and are recognized by their refusal.
func (a *access) who(t testing.TB, c call) string {
	t.Helper()
	c.method, c.path, c.body = "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", `{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}`
	code, answer := a.do(t, c)
	if code == http.StatusForbidden && strings.Contains(answer, `User \"system:anonymous\"`) {
		return "anonymous"
	}
	if code != http.StatusCreated {
		return fmt.Sprint(code)
	}
	var review struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}
	if err := json.Unmarshal([]byte(answer), &review); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	u := review.Status.UserInfo
	groups := slices.DeleteFunc(u.Groups, func(g string) bool { return g == "system:authenticated" })
	return strings.TrimSuffix(u.Username+" "+strings.Join(groups, ","), " ")
}

// patience bounds how long a busy machine may take for work of a second at most on a quiet one.
const patience = 2 * time.Minute

// eventually waits until a condition holds, and logs if that took longer than a second.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	start := time.Now()
	for ; !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
	if took := time.Since(start); took > time.Second {
		t.Logf("%s: after %s", what, took)
	}
}

type certificate = tls.Certificate

func jsonValid(text string) bool { return json.Valid([]byte(text)) }
