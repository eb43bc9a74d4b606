package oidc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/rowlock/rowlock/authx/oidc"
)

// issuer is a provider of tokens whose keys can change.
type issuer struct {
	*httptest.Server
	mu   sync.Mutex
	key  any
	id   string
	alg  jose.SignatureAlgorithm
	keys jose.JSONWebKeySet
}

func newIssuer(t *testing.T) *issuer {
	s := &issuer{}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": s.URL, "jwks_uri": s.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = json.NewEncoder(w).Encode(s.keys)
	})
	s.Server = httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s.rotate("one", jose.RS256, key, &key.PublicKey)
	return s
}

func (s *issuer) rotate(id string, alg jose.SignatureAlgorithm, private, public any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.id, s.alg = private, id, alg
	s.keys = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: id, Algorithm: string(alg), Use: "sig"}}}
}

func (s *issuer) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func sign(t *testing.T, alg jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
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

func (s *issuer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": s.URL, "aud": "app", "sub": "jane", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	return sign(t, s.alg, s.key, s.id, all)
}

// start makes an Authenticator that has found its provider.
func (s *issuer) start(t *testing.T, change func(p *oidc.Provider)) *oidc.Authenticator {
	t.Helper()
	empty := ""
	p := oidc.Provider{Issuer: oidc.Issuer{URL: s.URL, Audiences: []string{"app"}, CertificateAuthority: s.ca()}, SigningAlgs: oidc.Algorithms()}
	p.ClaimMappings.Username = oidc.Mapping{Claim: "sub", Prefix: &empty}
	if change != nil {
		change(&p)
	}
	a, err := oidc.New(p, []string{"api"})
	if err != nil {
		t.Fatal(err)
	}
	a.Run(t.Context(), func(err error) { t.Error(err) })
	if !a.Ready() {
		t.Fatal("not ready")
	}
	return a
}

func TestTokens(t *testing.T) {
	s := newIssuer(t)
	empty, groupPrefix := "", "g:"
	byClaim := func(p *oidc.Provider) {
		p.SigningAlgs = []string{"RS256"}
		p.ClaimMappings.Groups = oidc.Mapping{Claim: "groups", Prefix: &groupPrefix}
		p.ClaimValidationRules = []oidc.ClaimValidationRule{{Claim: "hd", RequiredValue: "example.com"}}
	}
	byEmail := func(p *oidc.Provider) { p.ClaimMappings.Username = oidc.Mapping{Claim: "email", Prefix: &empty} }
	byExpression := func(p *oidc.Provider) {
		p.Issuer.Audiences, p.Issuer.AudienceMatchPolicy = []string{"app", "web"}, oidc.MatchAny
		p.ClaimMappings = oidc.ClaimMappings{
			Username: oidc.Mapping{Expression: "claims.username + ':x'"},
			Groups:   oidc.Mapping{Expression: "claims.roles"},
			UID:      oidc.UIDMapping{Expression: "claims.sub"},
			Extra:    []oidc.ExtraMapping{{Key: "example.com/tenant", ValueExpression: "claims.tenant"}},
		}
		p.ClaimValidationRules = []oidc.ClaimValidationRule{{Expression: "claims.exp - claims.iat <= 86400", Message: "too long"}}
		p.UserValidationRules = []oidc.UserValidationRule{{Expression: "!user.username.startsWith('system:')", Message: "reserved"}}
	}
	good := map[string]any{"username": "u", "roles": []string{"a", "b"}, "tenant": "", "iat": time.Now().Unix()}
	with := func(base map[string]any, k string, v any) map[string]any {
		out := map[string]any{k: v}
		for key, value := range base {
			if key != k {
				out[key] = value
			}
		}
		return out
	}
	for _, tc := range []struct {
		name   string
		change func(*oidc.Provider)
		claims map[string]any
		user   string
		groups []string
		err    string
	}{
		{"plain", nil, nil, "jane", nil, ""},
		{"another audience", nil, map[string]any{"aud": "zzz"}, "", nil, `oidc: verify token: oidc: expected audience "app" got ["zzz"]`},
		{"expired", nil, map[string]any{"exp": time.Now().Add(-time.Second).Unix()}, "", nil, "oidc: verify token: oidc: token is expired"},
		{"without end", nil, map[string]any{"exp": nil}, "", nil, "oidc: verify token: oidc: token is expired"},
		{"not yet", nil, map[string]any{"nbf": time.Now().Add(400 * time.Second).Unix()}, "", nil, "before the nbf"},
		{"empty user", nil, map[string]any{"sub": ""}, "", nil, `oidc: empty username via claim "sub" is not allowed`},
		{"no user", nil, map[string]any{"sub": nil}, "", nil, `oidc: parse username claims "sub": claim not present`},
		{"groups", byClaim, map[string]any{"hd": "example.com", "groups": []string{"a"}}, "jane", []string{"g:a"}, ""},
		{"one group", byClaim, map[string]any{"hd": "example.com", "groups": "a"}, "jane", []string{"g:a"}, ""},
		{"required claim absent", byClaim, nil, "", nil, "oidc: required claim hd not present in ID token"},
		{"required claim differs", byClaim, map[string]any{"hd": "q"}, "", nil, "oidc: required claim hd value does not match. Got = q, want = example.com"},
		{"email", byEmail, map[string]any{"email": "j@x"}, "j@x", nil, ""},
		{"unverified", byEmail, map[string]any{"email": "j@x", "email_verified": false}, "", nil, "oidc: email not verified"},
		{"verified by a text", byEmail, map[string]any{"email": "j@x", "email_verified": "yes"}, "", nil, "oidc: parse 'email_verified' claim: "},
		{"expressions", byExpression, good, "u:x", []string{"a", "b"}, ""},
		{"second audience", byExpression, with(good, "aud", []string{"web", "q"}), "u:x", []string{"a", "b"}, ""},
		{"no such audience", byExpression, with(good, "aud", "q"), "", nil, `oidc: verify token: oidc: expected audience in ["app" "web"] got ["q"]`},
		{"missing claim", byExpression, nil, "", nil, "oidc: error evaluating username claim expression: expression 'claims.username + ':x'' resulted in error: no such key: username"},
		{"claim rule", byExpression, with(good, "iat", 5), "", nil, "oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.iat <= 86400' failed: too long"},
		{"user rule", byExpression, with(good, "username", "system:x"), "", nil, "oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith('system:')' failed: reserved"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			who, mine, err := s.start(t, tc.change).AuthenticateToken(t.Context(), s.token(t, tc.claims), []string{"api"})
			if !mine {
				t.Fatal("not mine")
			}
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if who.Identity.Name != tc.user || !slices.Equal(who.Identity.Groups, tc.groups) || len(who.Identity.Extra) != 0 {
				t.Fatalf("%+v", who.Identity)
			}
		})
	}
}

// TestNoAlgorithms: a provider that names no algorithms may use RS256, and not any.
func TestNoAlgorithms(t *testing.T) {
	s := newIssuer(t)
	a := s.start(t, func(p *oidc.Provider) { p.SigningAlgs = []string{} })
	if _, _, err := a.AuthenticateToken(t.Context(), s.token(t, nil), nil); err != nil {
		t.Errorf("RS256: %v", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.rotate("two", jose.ES256, key, &key.PublicKey)
	if who, _, err := a.AuthenticateToken(t.Context(), s.token(t, nil), nil); err == nil || !strings.Contains(err.Error(), `unsupported algorithm, expected ["RS256"] got "ES256"`) {
		t.Errorf("ES256: %v %v", who, err)
	}
}

func TestForgeries(t *testing.T) {
	s := newIssuer(t)
	a := s.start(t, func(p *oidc.Provider) { p.SigningAlgs = []string{"RS256"} })
	claims := map[string]any{"iss": s.URL, "aud": "app", "sub": "jane", "exp": time.Now().Add(time.Hour).Unix()}
	other, _ := rsa.GenerateKey(rand.Reader, 2048)
	curve, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	public, _ := x509.MarshalPKIXPublicKey(&s.key.(*rsa.PrivateKey).PublicKey)
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	payload, _ := json.Marshal(claims)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload) + "."
	for name, token := range map[string]string{
		"another key":          sign(t, jose.RS256, other, "one", claims),
		"unknown key":          sign(t, jose.RS256, other, "two", claims),
		"another algorithm":    sign(t, jose.ES256, curve, "one", claims),
		"public key as secret": sign(t, jose.HS256, secret, "one", claims),
		"none":                 none,
	} {
		if who, mine, err := a.AuthenticateToken(t.Context(), token, nil); err == nil || !mine || who != nil {
			t.Errorf("%s: %v %v %v", name, who, mine, err)
		}
	}
	for name, token := range map[string]string{"not a token": "abc", "another issuer": sign(t, s.alg, s.key, s.id, map[string]any{"iss": "https://q"})} {
		if _, mine, err := a.AuthenticateToken(t.Context(), token, nil); mine || err != nil {
			t.Errorf("%s: %v %v", name, mine, err)
		}
	}
	if _, mine, err := a.AuthenticateToken(t.Context(), s.token(t, nil), []string{"elsewhere"}); mine || err != nil {
		t.Errorf("for an audience that is not the API's: %v %v", mine, err)
	}
}

func TestRotation(t *testing.T) {
	s := newIssuer(t)
	a := s.start(t, nil)
	old := s.token(t, nil)
	if _, _, err := a.AuthenticateToken(t.Context(), old, nil); err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.rotate("two", jose.ES256, key, &key.PublicKey)
	// Waiting callers get fetched keys a moment before they are cached.
	next := s.token(t, nil)
	for end := time.Now().Add(2 * time.Minute); ; {
		_, _, taken := a.AuthenticateToken(t.Context(), next, nil)
		_, _, refused := a.AuthenticateToken(t.Context(), old, nil)
		if taken == nil && refused != nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("a token of the new key: %v; of the key that is gone: %v", taken, refused)
		}
	}
}

func TestNotFoundYet(t *testing.T) {
	s := newIssuer(t)
	empty := ""
	p := oidc.Provider{Issuer: oidc.Issuer{URL: s.URL, Audiences: []string{"app"}, CertificateAuthority: s.ca()}}
	p.ClaimMappings.Username = oidc.Mapping{Claim: "sub", Prefix: &empty}
	a, err := oidc.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.AuthenticateToken(context.Background(), s.token(t, nil), nil); err == nil || err.Error() != "oidc: authenticator not initialized" {
		t.Fatal(err)
	}
}

func TestValidate(t *testing.T) {
	empty, prefix, d := "", "p", "https://a/"
	base := func() oidc.Provider {
		return oidc.Provider{
			Issuer:        oidc.Issuer{URL: "https://a", Audiences: []string{"x"}},
			ClaimMappings: oidc.ClaimMappings{Username: oidc.Mapping{Claim: "sub", Prefix: &empty}},
		}
	}
	for want, change := range map[string]func(p *oidc.Provider){
		"jwt[0].issuer.url: Required value: URL is required":                                                       func(p *oidc.Provider) { p.Issuer.URL = "" },
		`jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https`:                                   func(p *oidc.Provider) { p.Issuer.URL = "http://a" },
		`jwt[0].issuer.url: Invalid value: "https://k": URL must not overlap with disallowed issuers: [https://k]`: func(p *oidc.Provider) { p.Issuer.URL = "https://k" },
		`jwt[0].issuer.discoveryURL: Invalid value: "https://a/": discoveryURL must be different from URL`:         func(p *oidc.Provider) { p.Issuer.DiscoveryURL = &d },
		"jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required":                func(p *oidc.Provider) { p.Issuer.Audiences = nil },
		"jwt[0].claimMappings.username: Required value: claim or expression is required":                           func(p *oidc.Provider) { p.ClaimMappings.Username = oidc.Mapping{} },
		"jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing": func(p *oidc.Provider) {
			p.ClaimMappings.Username.Prefix = nil
		},
		`jwt[0].claimMappings.username.prefix: Invalid value: "p": prefix can't be set when expression is set`: func(p *oidc.Provider) {
			p.ClaimMappings.Username = oidc.Mapping{Expression: "claims.sub", Prefix: &prefix}
		},
		`jwt[0].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression`: func(p *oidc.Provider) {
			p.ClaimMappings.Username = oidc.Mapping{Expression: "claims.email"}
		},
		`jwt[0].claimMappings.extra[0].key: Invalid value: "a.k8s.io/x": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use`: func(p *oidc.Provider) {
			p.ClaimMappings.Extra = []oidc.ExtraMapping{{Key: "a.k8s.io/x", ValueExpression: "'x'"}}
		},
		`jwt[0].claimValidationRules[0].expression: Invalid value: "claims.x": must evaluate to bool`: func(p *oidc.Provider) {
			p.ClaimValidationRules = []oidc.ClaimValidationRule{{Expression: "claims.x"}}
		},
		"undefined field 'name'": func(p *oidc.Provider) {
			p.UserValidationRules = []oidc.UserValidationRule{{Expression: "user.name == 'x'"}}
		},
	} {
		p := base()
		change(&p)
		if err := oidc.Validate([]oidc.Provider{p}, []string{"https://k"}).ToAggregate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if errs := oidc.Validate([]oidc.Provider{base(), base()}, nil); len(errs) != 1 || errs[0].Error() != `jwt[1].issuer.url: Duplicate value: "https://a"` {
		t.Error(errs)
	}
	verified := base()
	verified.ClaimMappings.Username = oidc.Mapping{Expression: "claims.email"}
	verified.ClaimValidationRules = []oidc.ClaimValidationRule{{Expression: "claims.?email_verified.orValue(true) == true"}}
	if errs := oidc.Validate([]oidc.Provider{verified}, nil); len(errs) > 0 {
		t.Error(errs)
	}
}

// TestCredentialID: the identifier of a token is kept if it is a non-empty string.
func TestCredentialID(t *testing.T) {
	s := newIssuer(t)
	for _, a := range []*oidc.Authenticator{
		s.start(t, nil),
		s.start(t, func(p *oidc.Provider) {
			p.ClaimMappings.Extra = []oidc.ExtraMapping{{Key: "example.com/tenant", ValueExpression: "claims.?tenant.orValue('')"}}
		}),
	} {
		for _, tc := range []struct {
			jti  any
			want []string
		}{
			{"one", []string{"JTI=one"}}, {"", nil}, {5, nil}, {nil, nil}, {[]string{"one"}, nil},
		} {
			who, _, err := a.AuthenticateToken(t.Context(), s.token(t, map[string]any{"jti": tc.jti}), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := who.Identity.Extra["authentication.kubernetes.io/credential-id"]; !slices.Equal(got, tc.want) {
				t.Errorf("jti %v: %q, want %q", tc.jti, got, tc.want)
			}
		}
	}
}

// TestTimes: clocks may be a minute apart where a token begins, and not at all where it ends.
func TestTimes(t *testing.T) {
	s := newIssuer(t)
	a := s.start(t, nil)
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for _, tc := range []struct {
		name   string
		claims map[string]any
		err    string
	}{
		{"begins in half a minute", map[string]any{"nbf": at(30 * time.Second)}, ""},
		{"begins in two minutes", map[string]any{"nbf": at(2 * time.Minute)}, "before the nbf"},
		{"begins in two minutes and a bit", map[string]any{"nbf": float64(at(2*time.Minute)) + .5}, "before the nbf"},
		{"begins never", map[string]any{"nbf": "1e30x"}, "oidc: verify token: "},
		{"ended", map[string]any{"exp": at(-2 * time.Second)}, "oidc: token is expired"},
		{"issued tomorrow", map[string]any{"iat": at(24 * time.Hour)}, ""},
	} {
		_, mine, err := a.AuthenticateToken(t.Context(), s.token(t, tc.claims), nil)
		if !mine || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %v %v, want %q", tc.name, mine, err, tc.err)
		}
	}
}

// TestUserRules: rules about users see all fields of an identity, and see that the token has a name.
func TestUserRules(t *testing.T) {
	s := newIssuer(t)
	for _, tc := range []struct {
		rule   string
		claims map[string]any
		want   bool
	}{
		{"user.groups.all(g, !g.startsWith('system:'))", nil, true},
		{"user.groups == [] && user.uid == '' && user.extra == {}", nil, true},
		{"has(user.username) && has(user.uid) && has(user.groups) && has(user.extra)", nil, true},
		{"!('example.com/tenant' in user.extra)", nil, true},
		{"user.extra['authentication.kubernetes.io/credential-id'] == ['JTI=one']", map[string]any{"jti": "one"}, true},
		{"user.groups.exists(g, g == 'a')", nil, false},
	} {
		a := s.start(t, func(p *oidc.Provider) {
			p.UserValidationRules = []oidc.UserValidationRule{{Expression: tc.rule, Message: "no"}}
		})
		if _, _, err := a.AuthenticateToken(t.Context(), s.token(t, tc.claims), nil); (err == nil) != tc.want {
			t.Errorf("%s: %v", tc.rule, err)
		}
	}
}

// TestDial: discovery and keys are fetched through the dialer of the provider.
func TestDial(t *testing.T) {
	s := newIssuer(t)
	real := s.Listener.Addr().String()
	var dialled atomic.Int32
	a := s.start(t, func(p *oidc.Provider) {
		p.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			dialled.Add(1)
			return new(net.Dialer).DialContext(ctx, network, real)
		}
	})
	if _, ok, err := a.AuthenticateToken(t.Context(), s.token(t, nil), []string{"api"}); err != nil || !ok || dialled.Load() == 0 {
		t.Errorf("%v, %v, %d connections", ok, err, dialled.Load())
	}
}
