package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/rowlock/rowlock/authx"
)

// published is a key set that is served, and counts how often.
type published struct {
	mu      sync.Mutex
	set     jose.JSONWebKeySet
	foreign string // a further key, as JSON
	code    int
	fetches atomic.Int64
	hold    chan struct{} // if not nil: answers wait for it
}

func (p *published) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.fetches.Add(1)
	if p.hold != nil {
		<-p.hold
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.code != 0 {
		w.WriteHeader(p.code)
		return
	}
	if p.foreign == "" {
		_ = json.NewEncoder(w).Encode(p.set)
		return
	}
	keys := []any{json.RawMessage(p.foreign)}
	for _, key := range p.set.Keys {
		keys = append(keys, key)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
}

// key publishes a new key in place of the others.
func (p *published) key(t *testing.T, id string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: id, Algorithm: "ES256"}}}
	return key
}

func signed(t *testing.T, key *ecdsa.PrivateKey, id string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signer.Sign([]byte(`{"sub":"jane"}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// fetcher returns a keySet of the published keys, with a clock.
func fetcher(t *testing.T, p *published) (*keySet, *time.Time) {
	t.Helper()
	srv := httptest.NewServer(p)
	t.Cleanup(srv.Close)
	now := time.Now()
	return newKeySet(srv.URL, srv.Client(), algorithms, func() time.Time { return now }), &now
}

// TestUnknownKeys: a thousand tokens with as many unknown keys cost the provider two
// fetches, then one every few seconds, and do not keep a new key from being found.
func TestUnknownKeys(t *testing.T) {
	p := &published{}
	good := p.key(t, "one")
	k, now := fetcher(t, p)
	forger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	flood := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := k.VerifySignature(t.Context(), signed(t, forger, fmt.Sprint("unknown ", i))); !errors.Is(err, errSignature) {
				t.Fatal(err)
			}
		}
	}
	if _, err := k.VerifySignature(t.Context(), signed(t, good, "one")); err != nil {
		t.Fatal(err)
	}
	flood(1000)
	if n := p.fetches.Load(); n != fetchBurst {
		t.Errorf("%d fetches", n)
	}
	for range 3 { // a key that is known by name, and not the one that signed, counts alike
		if _, err := k.VerifySignature(t.Context(), signed(t, forger, "one")); !errors.Is(err, errSignature) {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		*now = now.Add(fetchEvery)
		flood(20)
		if n := p.fetches.Load(); n != int64(fetchBurst+1+i) {
			t.Errorf("%d fetches after %d pauses", n, i+1)
		}
	}
	next := p.key(t, "two")
	flood(20)
	*now = now.Add(fetchEvery)
	if _, err := k.VerifySignature(t.Context(), signed(t, next, "two")); err != nil {
		t.Errorf("a new key in the middle of a flood: %v", err)
	}
	if _, err := k.VerifySignature(t.Context(), signed(t, good, "one")); !errors.Is(err, errSignature) {
		t.Errorf("a key that is gone: %v", err)
	}
	*now = now.Add(time.Hour)
	before := p.fetches.Load()
	flood(100)
	if n := p.fetches.Load() - before; n != fetchBurst {
		t.Errorf("%d fetches after an hour", n)
	}
}

// TestFetchesAreShared: concurrent callers wait for one fetch, up to a limit.
func TestFetchesAreShared(t *testing.T) {
	p := &published{hold: make(chan struct{})}
	good := p.key(t, "one")
	k, _ := fetcher(t, p)
	token := signed(t, good, "one")
	results := make(chan error, 10*maxWaiting)
	for range cap(results) {
		go func() {
			_, err := k.VerifySignature(t.Context(), token)
			results <- err
		}()
	}
	busy := 0
	for range cap(results) - maxWaiting - 1 { // all but the fetching one and the waiting ones
		if err := <-results; !errors.Is(err, authx.ErrBusy) {
			t.Fatal(err)
		}
		busy++
	}
	close(p.hold)
	for range maxWaiting + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := p.fetches.Load(); n != 1 || busy != 9*maxWaiting-1 {
		t.Errorf("%d fetches, %d refused", n, busy)
	}
}

// TestKeysCannotBeFetched: a provider in trouble is not asked for each token either, and
// keys that are known go on to count.
func TestKeysCannotBeFetched(t *testing.T) {
	p := &published{code: http.StatusServiceUnavailable}
	k, now := fetcher(t, p)
	good := p.key(t, "one")
	token := signed(t, good, "one")
	for range 50 {
		if _, err := k.VerifySignature(t.Context(), token); err == nil || errors.Is(err, errSignature) {
			t.Fatalf("%v", err)
		}
	}
	if n := p.fetches.Load(); n != fetchBurst {
		t.Errorf("%d fetches", n)
	}
	p.code = 0
	*now = now.Add(fetchEvery)
	if _, err := k.VerifySignature(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	p.code = http.StatusServiceUnavailable
	*now = now.Add(time.Hour)
	if _, err := k.VerifySignature(t.Context(), signed(t, good, "two")); err == nil {
		t.Error("a token of an unknown key is taken")
	}
	if _, err := k.VerifySignature(t.Context(), token); err != nil {
		t.Errorf("keys are forgotten: %v", err)
	}
}

// TestKeysOfOtherTypes: a provider may publish keys of types that the library does not know, for other clients. They do not
// keep tokens with the other keys from being verified. Keys that it withdraws are refused even if it publishes no others that
// the library knows; the error gives the reason.
func TestKeysOfOtherTypes(t *testing.T) {
	for name, foreign := range map[string]string{
		"a curve":     `{"kty":"OKP","crv":"X448","kid":"other","x":"PreoKbDNIPW8_AtZm2_sz22kYnEHvbDU80W0MCfYuXL8PjT7QjKhPcG3LV67D2uB73BxnvzNgmQ"}`,
		"a type":      `{"kty":"LATER","kid":"other"}`,
		"not decoded": `{"kty":"EC","crv":"P-256","kid":"other"}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := &published{foreign: foreign}
			k, now := fetcher(t, p)
			token := signed(t, p.key(t, "one"), "one")
			if _, err := k.VerifySignature(t.Context(), token); err != nil {
				t.Errorf("beside such a key: %v", err)
			}
			p.mu.Lock()
			p.set.Keys = nil
			p.mu.Unlock()
			*now = now.Add(time.Hour)
			for range 2 * fetchBurst {
				if _, err := k.VerifySignature(t.Context(), token); err == nil || errors.Is(err, errSignature) {
					t.Errorf("of a withdrawn key, beside such a key alone: %v", err)
				}
			}
			if signs, err := k.signs(t.Context(), token); signs || err != nil {
				t.Errorf("a withdrawn key signs: %t, %v", signs, err)
			}
		})
	}
}

// TestWithdrawnKeys: a key that the provider does not publish any more is refused after some time, although no token with an
// unknown key comes; unless the provider does not answer.
func TestWithdrawnKeys(t *testing.T) {
	p := &published{}
	token := signed(t, p.key(t, "one"), "one")
	k, now := fetcher(t, p)
	valid := func(want bool, fetches int64) {
		t.Helper()
		before := p.fetches.Load()
		for range 3 {
			_, err := k.VerifySignature(t.Context(), token)
			if signs, unknown := k.signs(t.Context(), token); (err == nil) != want || signs != want || unknown != nil {
				t.Errorf("%v, signed: %t, %v", err, signs, unknown)
			}
		}
		if n := p.fetches.Load() - before; want && n != fetches {
			t.Errorf("%d fetches", n)
		}
	}
	valid(true, 1)
	p.code = http.StatusServiceUnavailable
	*now = now.Add(renewAfter)
	valid(true, 1)
	p.code = 0
	p.key(t, "two")
	*now = now.Add(renewAfter - time.Second)
	valid(true, 0)
	*now = now.Add(time.Second)
	valid(false, 1)
	p.mu.Lock()
	p.set.Keys = nil
	p.mu.Unlock()
	*now = now.Add(renewAfter)
	valid(false, 1)
}
