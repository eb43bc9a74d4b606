package harness

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Issuer is a provider of OpenID Connect: it signs tokens, and publishes its keys,
// which can change.
type Issuer struct {
	*httptest.Server
	mu  sync.Mutex
	key *rsa.PrivateKey
	id  string
	set jose.JSONWebKeySet
}

// NewIssuer starts one.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		_ = json.NewEncoder(w).Encode(i.set)
	})
	i.Server = httptest.NewTLSServer(mux)
	t.Cleanup(i.Close)
	i.Rotate(t, "first")
	return i
}

// Rotate replaces the key: tokens that the old one signed are not to be believed any more.
func (i *Issuer) Rotate(t testing.TB, id string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.id = key, id
	i.set = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: string(jose.RS256), Use: "sig"}}}
}

// Key returns the key in use, and its name.
func (i *Issuer) Key() (*rsa.PrivateKey, string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.key, i.id
}

// CA returns the authority of the provider's certificate.
func (i *Issuer) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
}

// Claims returns the claims of a valid token for the audience "app".
func (i *Issuer) Claims(sub string) map[string]any {
	return map[string]any{"iss": i.URL, "aud": "app", "sub": sub, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
}

// Token signs claims.
func (i *Issuer) Token(t testing.TB, claims map[string]any) string {
	t.Helper()
	key, id := i.Key()
	return SignJWT(t, jose.RS256, key, id, claims)
}

// SignJWT makes a token with any algorithm and key. An empty id leaves the header
// without one.
func SignJWT(t testing.TB, alg jose.SignatureAlgorithm, key any, id string, claims any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}
