// Package tokenwebhook authenticates tokens by a remote service.
//
// An answer is cached no longer than its TTL and the token's expiry, if that is readable, for its token and
// audiences; failures are not cached; while the service is down, the tokens that only it can verify are
// refused, and one message is logged.
//
// Cost: any client may send tokens that only the service can verify. Each token is one call, however many
// requests carry it at once; the Gate of the configuration bounds the calls in flight, and the cache is
// bounded. A client that the Gate refuses learns that, and nothing about the token.
package tokenwebhook

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/authx/remote"
)

const (
	timeout    = 30 * time.Second // of one try
	remembered = 8192             // answers at most
	shortest   = 6                // bytes of a token that cannot be a word of an error by chance
)

// Config configures the service and the calls to it.
type Config struct {
	Kubeconfig string        // path; its current context is the service
	Version    string        // of TokenReview: "v1beta1" or "v1"
	CacheTTL   time.Duration // 0: nothing is remembered
	Audiences  []string      // of the API
	Gate       *authx.Gate   // bounds the calls in flight; nil: no bound
	Dial       remote.Dial   // how the service is reached; nil: directly
	Failed     func(error)   // is called once when the service fails; may be nil
}

// Authenticator calls the service.
type Authenticator struct {
	service   *remote.Service
	version   string
	audiences []string
	ttl       time.Duration
	answers   *cache.LRUExpireCache
	gate      *authx.Gate
	failures  authx.FailureLog

	mu    sync.Mutex
	asked map[[sha256.Size]byte]*reviewCall // in flight
}

// reviewCall is a call in flight. Its result may be read once done is closed.
type reviewCall struct {
	done chan struct{}
	reviewResult
	failed error
	ended  bool // the request that called ended before the answer: the result means nothing to others
}

// New reads the kubeconfig. It does not call the service yet.
func New(c Config) (*Authenticator, error) {
	if c.Version != "v1" && c.Version != "v1beta1" {
		return nil, fmt.Errorf(`unsupported authentication webhook version %q, supported versions are "v1", "v1beta1"`, c.Version)
	}
	service, err := remote.New(c.Kubeconfig, timeout, c.Dial)
	if err != nil {
		return nil, err
	}
	return &Authenticator{
		service: service, version: c.Version, audiences: c.Audiences, ttl: c.CacheTTL,
		answers: cache.NewLRUExpireCache(remembered),
		gate:    c.Gate, failures: authx.FailureLog{Report: c.Failed}, asked: map[[sha256.Size]byte]*reviewCall{},
	}, nil
}

var errNameless = errors.New("the token webhook accepts the token, but names no user")

// reviewResult is the service's answer.
type reviewResult struct {
	who *authx.Authenticated // nil: the token is no good
	err error                // why, if the service said so
}

// AuthenticateToken implements authx.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*authx.Authenticated, bool, error) {
	if len(audiences) == 0 {
		audiences = a.audiences
	}
	key := keyOf(token, audiences)
	v, err := a.review(ctx, a.gate, key, token, audiences)
	if err != nil {
		return nil, true, err
	}
	return v.who, v.who != nil || v.err != nil, v.err
}

// stillValid returns a function that reports whether the service still accepts a token, for the same user in the same groups. It
// returns true while the service fails, and after the expiry that the token states, which the service may give as its reason. The
// function does not enter the gate, which strangers may keep full: its caller bounds the calls.
func (a *Authenticator) stillValid(key [sha256.Size]byte, token string, audiences []string, id *authx.Identity) func(context.Context) bool {
	token = strings.Clone(token) // not the whole header
	return func(ctx context.Context) bool {
		v, err := a.review(ctx, nil, key, token, audiences)
		switch {
		case err != nil:
			return true
		case v.who == nil:
			return remaining(token, time.Now()) <= 0
		}
		return v.who.Identity.Covers(id)
	}
}

// review returns the cached answer about a token, or calls the service.
func (a *Authenticator) review(ctx context.Context, gate *authx.Gate, key [sha256.Size]byte, token string, audiences []string) (reviewResult, error) {
	if kept, ok := a.answers.Get(key); ok {
		return kept.(reviewResult), nil
	}
	return a.once(ctx, gate, key, token, audiences)
}

// once lets requests with the same token share one call.
func (a *Authenticator) once(ctx context.Context, gate *authx.Gate, key [sha256.Size]byte, token string, audiences []string) (reviewResult, error) {
	for {
		a.mu.Lock()
		q, shared := a.asked[key]
		if !shared {
			q = &reviewCall{done: make(chan struct{})}
			a.asked[key] = q
		}
		a.mu.Unlock()
		if !shared {
			a.find(ctx, gate, q, key, token, audiences)
			return q.reviewResult, q.failed
		}
		select {
		case <-q.done:
			if !q.ended {
				return q.reviewResult, q.failed
			}
		case <-ctx.Done():
			return reviewResult{}, ctx.Err()
		}
	}
}

// find calls the service, caches the answer, and wakes the requests that wait for it.
func (a *Authenticator) find(ctx context.Context, gate *authx.Gate, q *reviewCall, key [sha256.Size]byte, token string, audiences []string) {
	defer func() {
		a.mu.Lock()
		delete(a.asked, key)
		a.mu.Unlock()
		close(q.done)
	}()
	q.ended = true // for the requests that wait, if the call panics
	leave, err := gate.Enter(ctx)
	if err != nil {
		q.failed, q.ended = err, false
		return
	}
	defer leave()
	q.reviewResult, q.failed = a.ask(ctx, token, audiences)
	if q.who != nil {
		q.who.StillValid = a.stillValid(key, token, audiences, q.who.Identity)
	}
	if q.ended = ctx.Err() != nil; q.ended {
		return
	}
	a.failures.Note(q.failed)
	if q.failed == nil {
		a.remember(key, q.reviewResult, token)
	}
}

// remember keeps an answer that names no reason, for as long as it may hold.
func (a *Authenticator) remember(key [sha256.Size]byte, v reviewResult, token string) {
	if ttl := min(a.ttl, remaining(token, time.Now())); v.err == nil && ttl > 0 {
		a.answers.Add(key, v, ttl)
	}
}

// keyOf has no ambiguities: each part is of fixed length.
func keyOf(token string, audiences []string) [sha256.Size]byte {
	h := sha256.New()
	for _, part := range append([]string{token}, audiences...) {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// remaining returns the remaining lifetime that a token states; the maximum duration if it states none. It is not
// verified: it can only shorten caching.
func remaining(token string, now time.Time) time.Duration {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return math.MaxInt64
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expiry *float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(data, &claims) != nil || claims.Expiry == nil || *claims.Expiry > math.MaxInt32*1000.0 {
		return math.MaxInt64
	}
	return time.Unix(int64(*claims.Expiry), 0).Sub(now)
}

// ask calls the service, several times while it fails.
func (a *Authenticator) ask(ctx context.Context, token string, audiences []string) (reviewResult, error) {
	gvk := schema.GroupVersionKind{Group: authenticationv1.GroupName, Version: a.version, Kind: "TokenReview"}
	// Both versions have the same fields.
	question, err := json.Marshal(&authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String()},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	})
	if err != nil {
		return reviewResult{}, err
	}
	review := &authenticationv1.TokenReview{}
	if err := a.service.Ask(ctx, question, gvk, review); err != nil {
		return reviewResult{}, silent(err, token)
	}
	v := a.judge(review, audiences)
	v.err = silent(v.err, token)
	return v, nil
}

// silent returns an error without the token, which a service may have put into its answer:
// errors come into logs.
func silent(err error, token string) error {
	if err == nil || len(token) < shortest || !strings.Contains(err.Error(), token) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), token, "[token]"))
}

// judge turns an answer into a verdict.
func (a *Authenticator) judge(review *authenticationv1.TokenReview, asked []string) reviewResult {
	s := &review.Status
	if !s.Authenticated {
		if s.Error != "" {
			return reviewResult{err: errors.New(s.Error)}
		}
		return reviewResult{}
	}
	good := s.Audiences
	if len(good) == 0 {
		good = a.audiences
	}
	shared := authx.Intersect(asked, good)
	if len(shared) == 0 && len(asked) > 0 {
		return reviewResult{}
	}
	if s.User.Username == "" {
		return reviewResult{err: errNameless}
	}
	id := &authx.Identity{Name: s.User.Username, UID: s.User.UID, Groups: s.User.Groups}
	if len(s.User.Extra) > 0 {
		id.Extra = make(map[string][]string, len(s.User.Extra))
		for k, v := range s.User.Extra {
			id.Extra[k] = v
		}
	}
	return reviewResult{who: &authx.Authenticated{Identity: id, Audiences: shared}}
}
