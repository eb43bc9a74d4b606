package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/rowlock/rowlock/authx"
)

// A token with an unknown key causes a fetch of the keys, because they may have changed. Unauthenticated
// clients can send such tokens, so there are at most fetchBurst fetches in a row and then one every
// fetchEvery. A new key is known after the next fetch, whichever request caused it. A key that the provider no longer
// publishes is known for renewAfter, and then until the next token: the keys are fetched again. That holds also if all
// published keys are of types that the library does not know: the provider has withdrawn the others.
const (
	fetchBurst = 2
	fetchEvery = 5 * time.Second
	renewAfter = 5 * time.Minute
	fetchIn    = 10 * time.Second // a fetch takes no longer
	maxWaiting = 64               // requests that wait for one
)

var errSignature = errors.New("failed to verify id token signature")

// keySet verifies signatures with the keys that a provider publishes. It is a KeySet of
// package go-oidc, whose own fetches keys for each token that no key verifies.
type keySet struct {
	url    string
	client *http.Client
	algs   []jose.SignatureAlgorithm
	now    func() time.Time
	gate   *authx.Gate

	mu      sync.Mutex
	keys    []jose.JSONWebKey // nil: none were fetched yet
	err     error             // of the last fetch
	began   time.Time         // when the last fetch began
	fetched chan struct{}
	spare   int       // fetches that may be made at once
	earned  time.Time // when the last of them was added
}

func newKeySet(url string, client *http.Client, algs []string, now func() time.Time) *keySet {
	k := &keySet{
		url: url, client: client, now: now, spare: fetchBurst, earned: now(),
		gate: authx.NewGate(authx.GateConfig{What: "the keys of the token's issuer", All: maxWaiting}),
	}
	for _, alg := range algs {
		k.algs = append(k.algs, jose.SignatureAlgorithm(alg))
	}
	return k
}

// VerifySignature returns the payload of a token that one of the keys has signed.
func (k *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	signed, err := k.parse(token)
	if err != nil {
		return nil, err
	}
	if payload := verify(signed, k.current(ctx)); payload != nil {
		return payload, nil
	}
	keys, err := k.newer(ctx)
	if err != nil {
		return nil, err
	}
	if payload := verify(signed, keys); payload != nil {
		return payload, nil
	}
	return nil, errSignature
}

// signs reports whether one of the present keys has signed a token. The error means that no keys could be fetched.
func (k *keySet) signs(ctx context.Context, token string) (bool, error) {
	signed, err := k.parse(token)
	if err != nil {
		return false, nil // nor was it ever signed
	}
	keys := k.current(ctx)
	if keys == nil {
		if keys, err = k.newer(ctx); err != nil {
			return false, err
		}
	}
	return verify(signed, keys) != nil, nil
}

func (k *keySet) parse(token string) (*jose.JSONWebSignature, error) {
	signed, err := jose.ParseSigned(token, k.algs)
	if err != nil {
		return nil, fmt.Errorf("oidc: malformed jwt: %w", err)
	}
	if len(signed.Signatures) != 1 {
		return nil, errSignature
	}
	return signed, nil
}

// current returns the keys, and fetches them first if the last fetch was long ago. If that fails, they stay for as long again.
func (k *keySet) current(ctx context.Context) []jose.JSONWebKey {
	keys, old := k.known()
	if keys != nil && old {
		_, _ = k.newer(ctx)
		keys, _ = k.known()
	}
	return keys
}

// known returns the keys, and whether the last fetch was long ago.
func (k *keySet) known() (keys []jose.JSONWebKey, old bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys, k.now().Sub(k.began) >= renewAfter
}

// verify tries the keys that a signature may be of. An empty payload is none.
func verify(signed *jose.JSONWebSignature, keys []jose.JSONWebKey) []byte {
	id := signed.Signatures[0].Header.KeyID
	for i := range keys {
		if id != "" && id != keys[i].KeyID {
			continue
		}
		if payload, err := signed.Verify(&keys[i]); err == nil && len(payload) > 0 {
			return payload
		}
	}
	return nil
}

// newer fetches the keys, or waits for a fetch in flight; it errs where it is too early for
// that, as for a token with an unknown key.
func (k *keySet) newer(ctx context.Context) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	if under := k.fetched; under != nil {
		k.mu.Unlock()
		return k.wait(ctx, under)
	}
	defer k.mu.Unlock()
	if !k.mayFetch() {
		if k.err != nil && len(k.keys) == 0 {
			return nil, fmt.Errorf("fetching keys %w", k.err)
		}
		return nil, errSignature
	}
	done := make(chan struct{})
	k.fetched, k.began = done, k.now()
	k.mu.Unlock()
	keys, err := k.fetch(ctx)
	k.mu.Lock()
	if k.err = err; keys != nil {
		k.keys = keys
	}
	k.fetched = nil
	close(done)
	if err != nil {
		return nil, fmt.Errorf("fetching keys %w", err)
	}
	return keys, nil
}

// wait waits for a fetch of another request.
func (k *keySet) wait(ctx context.Context, under <-chan struct{}) ([]jose.JSONWebKey, error) {
	leave, err := k.gate.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case <-under:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, fmt.Errorf("fetching keys %w", k.err)
	}
	return k.keys, nil
}

// mayFetch takes one of the fetches that may be made now.
func (k *keySet) mayFetch() bool {
	now := k.now()
	if n := now.Sub(k.earned) / fetchEvery; n > 0 {
		k.spare, k.earned = min(fetchBurst, k.spare+int(min(n, fetchBurst))), k.earned.Add(n*fetchEvery)
	}
	if k.spare == 0 {
		return false
	}
	if k.spare == fetchBurst {
		k.earned = now
	}
	k.spare--
	return true
}

// fetch fetches the keys. It does not end with the request that caused it: others wait,
// and a client that disconnects at once would only use fetches up.
func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchIn)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body) // bounded
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("oidc: get keys failed: %s", resp.Status)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("oidc: the key set is longer than %d bytes", maxAnswer)
	}
	return decodeKeys(body)
}

// decodeKeys decodes a key set. It leaves out keys of types that it does not know, as RFC 7517 (section 5) asks for. If it
// knows none of them, it returns an empty list and the reason.
func decodeKeys(body []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("oidc: failed to decode keys: %w", err)
	}
	known := []jose.JSONWebKey{}
	var failed error
	for _, text := range set.Keys {
		var key jose.JSONWebKey
		if err := json.Unmarshal(text, &key); err == nil {
			known = append(known, key)
		} else if failed == nil {
			failed = fmt.Errorf("oidc: failed to decode keys: %w", err)
		}
	}
	if len(known) > 0 {
		failed = nil
	}
	return known, failed
}
