package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"

	"github.com/rowlock/rowlock/authx"
)

// A token with a distributed claim causes a request to its endpoint, which the client of a good token can have made with
// each of its own.
const (
	maxSources = 16 // other issuers of distributed claims that are remembered
	maxFetches = 64 // distributed claims that are fetched at once
	// Fetched claims are remembered for keptFor, maxKept of at most maxClaim bytes.
	keptFor  = 10 * time.Second
	maxKept  = 256
	maxClaim = 64 << 10
)

// source locates a claim that a token does not hold itself (OpenID Connect Core 1.0, section
// 5.6.2).
type source struct {
	URL         string `json:"endpoint"`
	AccessToken string `json:"access_token"`
	JWT         string `json:"JWT"` // aggregated claims, which are ignored
}

// verifiers are the verifiers of the issuers of distributed claims.
type verifiers struct {
	mu sync.Mutex
	m  map[string]*verifier
}

// fetch adds the claim that groups come from, if the token refers to another source of it. A claim
// that is in the token counts more.
func (a *Authenticator) fetch(ctx context.Context, c *claims) error {
	name := a.provider.ClaimMappings.Groups.Claim
	if _, ok := c.raw[name]; ok || name == "" {
		return nil
	}
	s, err := c.source(name)
	if s == nil || err != nil {
		return err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q %q", s.URL, s.AccessToken))
	if kept, ok := a.fetched.Get(key); ok {
		c.raw[name] = kept.(json.RawMessage)
		return nil
	}
	leave, err := a.fetches.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	token, err := a.fetchToken(ctx, s)
	if err != nil {
		return fmt.Errorf("while getting distributed claim %q: %w", name, err)
	}
	_, issuer, ok := peek(token)
	if !ok {
		return fmt.Errorf("what the endpoint of claim %q answers is no token", name)
	}
	v, err := a.verifierOf(ctx, issuer)
	if err != nil {
		return fmt.Errorf("the issuer %q of claim %q: %w", issuer, name, err)
	}
	verified, err := a.verify(ctx, v, token)
	if err != nil {
		return fmt.Errorf("verify distributed claim token: %w", err)
	}
	if len(authx.Intersect(a.provider.Issuer.Audiences, verified.Audience)) == 0 {
		return errors.New("verify distributed claim token: it is for another audience")
	}
	var found map[string]json.RawMessage
	if err := verified.Claims(&found); err != nil {
		return fmt.Errorf("could not parse distributed claims for claim %s: %w", name, err)
	}
	value, ok := found[name]
	if !ok {
		return fmt.Errorf("jwt returned by distributed claim endpoint %q did not contain claim: %s", s.URL, name)
	}
	c.raw[name] = value
	if left := min(keptFor, verified.Expiry.Sub(a.now())); left > 0 && len(value) <= maxClaim {
		a.fetched.Add(key, value, left)
	}
	return nil
}

// source returns the source of a claim; nil if it has none.
func (c *claims) source(name string) (*source, error) {
	names, ok := c.raw["_claim_names"]
	if !ok {
		return nil, nil
	}
	var of map[string]string
	if err := json.Unmarshal(names, &of); err != nil {
		return nil, fmt.Errorf("error unmarshaling distributed claim names: %w", err)
	}
	list, ok := c.raw["_claim_sources"]
	if !ok {
		return nil, errors.New("no claim sources")
	}
	var sources map[string]source
	if err := json.Unmarshal(list, &sources); err != nil {
		return nil, fmt.Errorf("could not unmarshal claim sources: %w", err)
	}
	id, ok := of[name]
	if !ok {
		return nil, nil
	}
	s, ok := sources[id]
	if !ok {
		return nil, fmt.Errorf("id token _claim_names contained a source %s missing in _claims_sources", id)
	}
	if s.URL == "" {
		return nil, nil
	}
	return &s, nil
}

// fetchToken fetches the token that holds the claim from an endpoint.
func (a *Authenticator) fetchToken(ctx context.Context, s *source) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "https" {
		return "", fmt.Errorf("%q is no https URL", s.URL)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return "", err
	}
	if s.AccessToken != "" {
		r.Header.Set("Authorization", "Bearer "+s.AccessToken)
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body) // bounded
	if err != nil {
		return "", err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return "", fmt.Errorf("the endpoint answers %s", resp.Status)
	}
	return string(data), nil
}

// verifierOf finds the keys of an issuer of distributed claims.
func (a *Authenticator) verifierOf(ctx context.Context, issuer string) (*verifier, error) {
	if issuer == a.provider.Issuer.URL {
		return a.verifier.Load(), nil
	}
	a.others.mu.Lock()
	v := a.others.m[issuer]
	a.others.mu.Unlock()
	if v != nil {
		return v, nil
	}
	if u, err := url.Parse(issuer); err != nil || u.Scheme != "https" {
		return nil, errors.New("no https URL")
	}
	p, err := gooidc.NewProvider(gooidc.ClientContext(ctx, a.client), issuer)
	if err != nil {
		return nil, err
	}
	if v, err = a.verifies(issuer, p); err != nil {
		return nil, err
	}
	a.others.mu.Lock()
	defer a.others.mu.Unlock()
	if len(a.others.m) >= maxSources || a.others.m == nil {
		a.others.m = map[string]*verifier{}
	}
	a.others.m[issuer] = v
	return v, nil
}
