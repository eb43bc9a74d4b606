package authx_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/authx/clientcert"
	"github.com/rowlock/rowlock/authx/node"
	"github.com/rowlock/rowlock/authx/proxy"
	"github.com/rowlock/rowlock/authx/rbac"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/authx/tokenfile"
)

// door is everything that a request passes before it is let in: every way to
// authenticate, and Node and RBAC with 1,000 bindings and 10,000 rules.
type door struct {
	authx.Authenticator
	authx.Authorizer
	certificate *tls.ConnectionState // of jane, in group devs
	token       string               // of service account ns:app, bound to a pod
}

const api = "https://kubernetes.default.svc"

func newDoor(tb testing.TB) *door {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	ca, caKey := certificate(tb, "authority", nil, nil)
	leaf, _ := certificate(tb, "jane", ca, caKey)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	trusted := func() *x509.CertPool { return roots }

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	local, err := serviceaccount.NewLocal(key)
	must(err)
	d := &door{certificate: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}}
	d.token, _, err = serviceaccount.NewSigner(api, local).Issue(context.Background(), &authx.Grant{
		Namespace: "ns", Account: authx.Ref{Name: "app", UID: "u1"}, Pod: &authx.Ref{Name: "p", UID: "u2"},
		Audiences: []string{api}, Issued: time.Now(), Expires: time.Now().Add(time.Hour),
	})
	must(err)
	accounts := serviceaccount.New(serviceaccount.Config{
		Issuers: []string{api}, Keys: serviceaccount.Fixed{local.Key()}, Audiences: []string{api}, Lookup: lookup{"app": "u1", "p": "u2"},
	})
	file := filepath.Join(tb.TempDir(), "tokens.csv")
	must(os.WriteFile(file, []byte("secret,somebody,uid\n"), 0o600))
	static, err := tokenfile.Load(file)
	must(err)
	agnostic := func(t authx.TokenAuthenticator) authx.TokenAuthenticator {
		return authx.AudienceAgnostic{Tokens: t, API: []string{api}}
	}
	d.Authenticator = authx.AllowAnonymous{Next: authx.Chain{
		proxy.New(proxy.Config{Roots: trusted, AllowedNames: []string{"front"}, User: []string{"X-Remote-User"}}),
		clientcert.New(trusted, false),
		authx.Bearer{Tokens: authx.TokenChain{
			agnostic(static), agnostic(&bootstrap.Authenticator{Secrets: lookup{}, Clock: time.Now}), accounts,
		}, Audiences: []string{api}},
	}}

	roles := rbac.New()
	for i := range 1000 {
		name, ns := fmt.Sprint("r", i), []string{"", "ns"}[i%2]
		var rules []rbacv1.PolicyRule
		for j := range 10 {
			rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{fmt.Sprintf("r%d-%d", i, j)}})
		}
		if i == 999 {
			rules[9].Resources = []string{"pods"}
		}
		roles.SetRole("", name, rules)
		roles.SetBinding(ns, name, rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, []rbacv1.Subject{
			{Kind: "Group", Name: "devs"}, {Kind: "ServiceAccount", Namespace: "ns", Name: "app"},
		})
	}
	d.Authorizer = authx.AuthorizerChain{authx.SystemMasters{}, &node.Authorizer{Graph: &node.Graph{}, Allows: rbac.RuleAllows, Selectors: true}, roles}
	return d
}

func certificate(tb testing.TB, name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name, Organization: []string{"devs"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		c.IsCA, c.KeyUsage, c.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		tb.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	return c, key
}

// lookup knows objects by name, and no Secrets.
type lookup map[string]string

func (l lookup) Object(_ context.Context, _, _, name string) (serviceaccount.Object, bool, error) {
	uid, ok := l[name]
	return serviceaccount.Object{UID: uid}, ok, nil
}

func (lookup) Secret(context.Context, string, string) (s serviceaccount.Secret, found bool, err error) {
	return s, false, nil
}

func (lookup) BootstrapSecret(context.Context, string) (s bootstrap.Secret, found bool, err error) {
	return s, false, nil
}

// enter authenticates a request and asks whether it may get a pod.
func (d *door) enter(r *http.Request) (authx.Decision, error) {
	who, _, err := d.Authenticate(r)
	if err != nil {
		return authx.NoOpinion, err
	}
	got, _, err := d.Authorize(r.Context(), &authx.Attributes{
		User: who.Identity, Verb: "get", APIVersion: "v1", Resource: "pods", Namespace: "ns", Name: "p", ResourceRequest: true,
	})
	return got, err
}

// ways are requests of jane and of the account; again prepares them again.
func (d *door) ways() map[string]struct {
	r     *http.Request
	again func()
} {
	byCert, byToken := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRequest(http.MethodGet, "/", nil)
	byCert.TLS, byToken.TLS = d.certificate, &tls.ConnectionState{}
	header := []string{"Bearer " + d.token}
	return map[string]struct {
		r     *http.Request
		again func()
	}{
		"x509":            {byCert, func() {}},
		"service account": {byToken, func() { byToken.Header["Authorization"] = header }},
	}
}

// BenchmarkWarm is the cost of authenticating and authorizing a request of a user with cached credentials.
func BenchmarkWarm(b *testing.B) {
	d := newDoor(b)
	for name, way := range d.ways() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				way.again()
				if got, err := d.enter(way.r); got != authx.Allow || err != nil {
					b.Fatal(got, err)
				}
			}
		})
	}
}

// A cached request allocates almost nothing; without the cache, verifying alone would make hundreds of
// allocations.
func TestWarmAllocations(t *testing.T) {
	d := newDoor(t)
	for name, way := range d.ways() {
		n := testing.AllocsPerRun(50, func() {
			way.again()
			if got, err := d.enter(way.r); got != authx.Allow || err != nil {
				t.Fatal(name, got, err)
			}
		})
		if n > 10 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
