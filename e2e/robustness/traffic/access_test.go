//go:build unix

package traffic

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/rowlock/rowlock/authx/clientcert"
)

// TestWays: each way has valid bodies, takes away what it gave or what it made, and has uses that name its turn.
func TestWays(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, w := range ways("turn") {
		if seen[w.name] || !strings.HasPrefix(w.name, "turn-") {
			t.Errorf("%q is no name of its own", w.name)
		}
		seen[w.name] = true
		patched := false
		for _, object := range append(w.made, w.give) {
			var made struct{ Metadata struct{ Name string } }
			if err := json.Unmarshal([]byte(object[1]), &made); err != nil || made.Metadata.Name != w.name {
				t.Errorf("%s: %s: %v", w.name, object[1], err)
			}
			patched = patched || w.patch[0] == object[0]+"/"+w.name
		}
		if !patched || !json.Valid([]byte(w.patch[1])) {
			t.Errorf("%s: it has nothing to patch at %s, or not by %s", w.name, w.patch[0], w.patch[1])
		}
		if len(w.uses) == 0 || len(w.nevers) == 0 {
			t.Errorf("%s: %d uses, %d of what is never allowed", w.name, len(w.uses), len(w.nevers))
		}
		for _, u := range w.uses {
			if !strings.Contains(u.path+u.lists, w.name) {
				t.Errorf("%s: a use of what other turns may give: %+v", w.name, u)
			}
		}
	}
}

// TestListed: the text of a problem is not that of a rule.
func TestListed(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		`{"status":{"resourceRules":[{"resourceNames":["turn"]}],"nonResourceRules":[]}}`:                               true,
		`{"status":{"resourceRules":[],"nonResourceRules":[{"nonResourceURLs":["/turn/*"]}]}}`:                          true,
		`{"status":{"resourceRules":[],"nonResourceRules":[],"evaluationError":"role \"turn\" not found"}}`:             false,
		`{"metadata":{"name":"turn"},"status":{"resourceRules":[{"resourceNames":["other"]}],"nonResourceRules":null}}`: false,
	} {
		if listed([]byte(answer), "turn") != want {
			t.Errorf("%s: want %v", answer, want)
		}
	}
}

// TestMint: a token has the claims of another one but for the change, and the signature of the key.
func TestMint(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	m := &mint{claims: []byte(`{"exp":1796000000,"iss":"here","kubernetes.io":{"serviceaccount":{"name":"a","uid":"u"}}}`)}
	if m.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil); err != nil {
		t.Fatal(err)
	}
	signed, err := jose.ParseSigned(m.token(func(claims map[string]any) {
		claims["exp"] = 1700000000
		account(claims)["uid"] = "other"
	}), []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		t.Fatal(err)
	}
	got, err := signed.Verify(key.Public())
	if want := `{"exp":1700000000,"iss":"here","kubernetes.io":{"serviceaccount":{"name":"a","uid":"other"}}}`; err != nil || string(got) != want {
		t.Errorf("%s, want %s: %v", got, want, err)
	}
	if same := m.changed(func(map[string]any) {}); string(same) != string(m.claims) {
		t.Errorf("%s", same)
	}
	if _, err := jose.ParseSigned(m.unsigned(), []jose.SignatureAlgorithm{jose.RS256}); err == nil {
		t.Error("a token without a signature has one")
	}
}

// TestVerbRights: each right is another one, with a valid request that needs it.
func TestVerbRights(t *testing.T) {
	t.Parallel()
	rights, requests := map[string]bool{}, map[string]bool{}
	for _, r := range verbRights {
		right := r.verb + " " + r.group + " " + r.resource
		if rights[right] {
			t.Errorf("%s: it is there twice", right)
		}
		rights[right] = true
		for _, u := range append([]use{r.need}, r.nevers...) {
			request := u.method + " " + u.path
			if requests[request] {
				t.Errorf("%s: another right has a request for %s", right, request)
			}
			requests[request] = true
			if u.body != "" && !json.Valid([]byte(u.body)) {
				t.Errorf("%s: %s is no JSON", right, u.body)
			}
		}
	}
}

// TestAuthorities: a certificate of an authority is valid for clients as long as the file has the authority, and the file always has another one.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a, err := newAuthority("first")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := a.client("user")
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for i, others := range [][]*authority{nil, {a}, nil, {a}} {
		if err := writeAuthorities(folder, others...); err != nil {
			t.Fatal(err)
		}
		all, err := clientcert.LoadAuthorities(filepath.Join(folder, authoritiesFile))
		if err != nil || len(all) != 1+len(others) {
			t.Fatalf("%d: %d authorities, %v", i, len(all), err)
		}
		pool := x509.NewCertPool()
		for _, c := range all {
			pool.AddCert(c)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); (err == nil) != (len(others) > 0) {
			t.Errorf("%d: %v", i, err)
		}
	}
}
