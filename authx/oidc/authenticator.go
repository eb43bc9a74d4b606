package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/rowlock/rowlock/authx"
)

// algorithms are all that a provider may sign with.
var algorithms = []string{
	gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.PS256, gooidc.PS384, gooidc.PS512,
}

// Algorithms returns all signing algorithms that a provider may be allowed: those with key pairs.
func Algorithms() []string { return slices.Clone(algorithms) }

// retryAfter is the pause before a provider that did not answer is tried again.
const retryAfter = 10 * time.Second

// Authenticator judges the tokens of one provider.
type Authenticator struct {
	provider Provider
	compiled *compiled
	algs     []string
	client   *http.Client
	audience []string // of the API, for which all tokens of the provider are valid
	verifier atomic.Pointer[verifier]
	others   verifiers
	fetches  *authx.Gate           // of distributed claims
	fetched  *cache.LRUExpireCache // distributed claims, by their source
	now      func() time.Time
}

// verifier verifies the tokens of one issuer.
type verifier struct {
	*gooidc.IDTokenVerifier
	keys *keySet
}

// New makes an Authenticator; audiences are those of the API. It refuses tokens until Run has discovered the
// provider.
func New(p Provider, audiences []string) (*Authenticator, error) {
	c, errs := p.compile(nil, nil)
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	a := &Authenticator{provider: p, compiled: c, algs: p.SigningAlgs, audience: audiences, now: time.Now, fetched: cache.NewLRUExpireCache(maxKept)}
	a.fetches = authx.NewGate(authx.GateConfig{What: "distributed claims", All: maxFetches, Each: maxFetches / 8, Source: p.Source})
	if len(a.algs) == 0 {
		a.algs = []string{gooidc.RS256} // the one that OpenID Connect requires of all providers
	}
	for _, alg := range a.algs {
		if !slices.Contains(algorithms, alg) {
			return nil, fmt.Errorf("oidc: unsupported signing alg: %q: want %s", alg, strings.Join(algorithms, ", "))
		}
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if ca := p.Issuer.CertificateAuthority; ca != "" {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(ca))
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if p.Dial != nil {
		transport.Proxy, transport.DialContext = nil, p.Dial
	}
	a.client = &http.Client{Transport: bounded{transport}, Timeout: 30 * time.Second, CheckRedirect: staysEncrypted}
	if d := p.Issuer.discovery(); d != "" {
		a.client.Transport = redirect{
			next: bounded{transport}, from: strings.TrimSuffix(p.Issuer.URL, "/") + "/.well-known/openid-configuration", to: d,
		}
	}
	return a, nil
}

// staysEncrypted follows redirects, but to https alone: keys that arrive in plain text could come from anyone, and
// the access token of a distributed claim would be sent in plain text too.
func staysEncrypted(next *http.Request, before []*http.Request) error {
	switch {
	case next.URL.Scheme != "https":
		return fmt.Errorf("it redirects to %s, which is no https URL", next.URL.Redacted())
	case len(before) >= maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	return nil
}

// maxRedirects is as many as package net/http follows.
const maxRedirects = 10

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 1 << 20

// bounded cuts answers off behind maxAnswer bytes and one.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer+1), resp.Body}
	return resp, nil
}

// redirect fetches one document from elsewhere.
type redirect struct {
	next     http.RoundTripper
	from, to string
}

func (d redirect) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() != d.from {
		return d.next.RoundTrip(r)
	}
	other, err := http.NewRequestWithContext(r.Context(), r.Method, d.to, nil)
	if err != nil {
		return nil, err
	}
	other.Header = r.Header.Clone()
	return d.next.RoundTrip(other)
}

// Run finds the provider, as often as it takes, and returns when that is done or
// ctx ends. Each failure is reported to failed.
func (a *Authenticator) Run(ctx context.Context, failed func(error)) {
	for {
		err := a.discover(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		failed(fmt.Errorf("oidc: initializing the provider %s: %w", a.provider.Issuer.URL, err))
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryAfter):
		}
	}
}

// Ready reports whether the provider has been found.
func (a *Authenticator) Ready() bool { return a.verifier.Load() != nil }

func (a *Authenticator) discover(ctx context.Context) error {
	p, err := gooidc.NewProvider(gooidc.ClientContext(ctx, a.client), a.provider.Issuer.URL)
	if err != nil {
		return err
	}
	v, err := a.verifies(a.provider.Issuer.URL, p)
	if err != nil {
		return err
	}
	a.verifier.Store(v)
	return nil
}

// verifies makes the verifier for tokens of a discovered issuer.
func (a *Authenticator) verifies(issuer string, p *gooidc.Provider) (*verifier, error) {
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&found); err != nil {
		return nil, err
	}
	keys := newKeySet(found.Keys, a.client, a.algs, func() time.Time { return a.now() })
	return &verifier{gooidc.NewVerifier(issuer, keys, a.verifierConfig()), keys}, nil
}

// verifierConfig configures how tokens are verified.
func (a *Authenticator) verifierConfig() *gooidc.Config {
	cfg := &gooidc.Config{SupportedSigningAlgs: a.algs, Now: func() time.Time { return a.now() }}
	if auds := a.provider.Issuer.Audiences; len(auds) == 1 {
		cfg.ClientID = auds[0]
	} else {
		cfg.SkipClientIDCheck = true // checked after the signature
	}
	return cfg
}

// leeway bounds how far the clock of an issuer may be ahead, as on a stock server. The library that
// verifies tokens allows five minutes.
const leeway = time.Minute

// verify checks a token's signature and its times.
func (a *Authenticator) verify(ctx context.Context, v *verifier, token string) (*gooidc.IDToken, error) {
	verified, err := v.Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	var times struct {
		NotBefore *json.Number `json:"nbf"`
	}
	if err := verified.Claims(&times); err != nil || times.NotBefore == nil {
		return verified, err
	}
	seconds, err := times.NotBefore.Int64()
	if err != nil {
		fraction, err := times.NotBefore.Float64()
		if err != nil {
			return nil, fmt.Errorf("oidc: parse nbf: %w", err)
		}
		seconds = int64(fraction)
	}
	if now, start := a.now(), time.Unix(seconds, 0); now.Add(leeway).Before(start) {
		return nil, fmt.Errorf("oidc: current time %v before the nbf (not before) time: %v", now, start)
	}
	return verified, nil
}

var errNotReady = errors.New("oidc: authenticator not initialized")

// AuthenticateToken implements authx.TokenAuthenticator. Tokens of other issuers are not
// ours; no token is nil's.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*authx.Authenticated, bool, error) {
	if a == nil {
		return nil, false, nil
	}
	alg, issuer, ok := peek(token)
	if !ok || issuer != a.provider.Issuer.URL {
		return nil, false, nil
	}
	shared := authx.Intersect(a.audience, audiences)
	if len(audiences) == 0 {
		shared = a.audience
	} else if len(shared) == 0 {
		return nil, false, nil
	}
	verifier := a.verifier.Load()
	if verifier == nil {
		return nil, true, errNotReady
	}
	if !slices.Contains(a.algs, alg) {
		return nil, true, fmt.Errorf("oidc: verify token: oidc: id token signed with unsupported algorithm, expected %q got %q", a.algs, alg)
	}
	verified, err := a.verify(ctx, verifier, token)
	if err != nil {
		return nil, true, fmt.Errorf("oidc: verify token: %w", err)
	}
	if wanted := a.provider.Issuer.Audiences; len(authx.Intersect(wanted, verified.Audience)) == 0 {
		return nil, true, fmt.Errorf("oidc: verify token: oidc: expected audience in %q got %q", slices.Sorted(slices.Values(wanted)), verified.Audience)
	}
	var raw json.RawMessage
	if err := verified.Claims(&raw); err != nil {
		return nil, true, fmt.Errorf("oidc: parse claims: %w", err)
	}
	id, err := a.identity(ctx, raw)
	if err != nil {
		return nil, true, err
	}
	return &authx.Authenticated{Identity: id, Audiences: shared}, true, nil
}

// IsExpired reports whether an error of AuthenticateToken means that the token has expired.
func IsExpired(err error) bool {
	var expired *gooidc.TokenExpiredError
	return errors.As(err, &expired)
}

// Signed reports whether the provider still publishes a key that has signed a token. The error means that its keys are unknown.
func (a *Authenticator) Signed(ctx context.Context, token string) (bool, error) {
	v := a.verifier.Load()
	if v == nil {
		return false, errNotReady
	}
	return v.keys.signs(ctx, token)
}

// Issuer returns whose tokens are judged.
func (a *Authenticator) Issuer() string { return a.provider.Issuer.URL }

// IssuerOf reads the claimed issuer of a token; "" if there is none. Nothing is
// verified.
func IssuerOf(token string) string {
	_, issuer, _ := peek(token)
	return issuer
}

// peek reads the claimed issuer and algorithm of a token. Nothing is verified.
func peek(token string) (alg, issuer string, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", "", false
	}
	var header struct {
		Alg string `json:"alg"`
	}
	var payload struct {
		Issuer string `json:"iss"`
	}
	for i, into := range []any{&header, &payload} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(data, into) != nil {
			return "", "", false
		}
	}
	return header.Alg, payload.Issuer, true
}
