// Package tokenwebhook authenticates by asking a remote service about tokens.
//
// It promises: an answer is remembered for no longer than its time and the token's
// own, where that can be read, and for the token and audiences it was about; failures
// are not remembered; a service that is down refuses the tokens that only it could
// judge.
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
)

// Config says whom to ask, and how.
type Config struct {
	Kubeconfig string        // path; its current context is the service
	Version    string        // of TokenReview: "v1beta1" or "v1"
	CacheTTL   time.Duration // 0: nothing is remembered
	Audiences  []string      // of the API
}

// Authenticator asks the service.
type Authenticator struct {
	service   *remote.Service
	version   string
	audiences []string
	ttl       time.Duration
	answers   *cache.LRUExpireCache
}

// New reads the kubeconfig. The service is not asked anything yet.
func New(c Config) (*Authenticator, error) {
	if c.Version != "v1" && c.Version != "v1beta1" {
		return nil, fmt.Errorf(`unsupported authentication webhook version %q, supported versions are "v1", "v1beta1"`, c.Version)
	}
	service, err := remote.New(c.Kubeconfig, timeout)
	if err != nil {
		return nil, err
	}
	return &Authenticator{
		service: service, version: c.Version, audiences: c.Audiences, ttl: c.CacheTTL,
		answers: cache.NewLRUExpireCache(remembered),
	}, nil
}

// verdict is what the service said.
type verdict struct {
	who *authx.Authenticated // nil: the token is no good
	err error                // why, if the service said so
}

// AuthenticateToken implements authx.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*authx.Authenticated, bool, error) {
	if len(audiences) == 0 {
		audiences = a.audiences
	}
	key := keyOf(token, audiences)
	if kept, ok := a.answers.Get(key); ok {
		v := kept.(verdict)
		return v.who, v.who != nil, nil
	}
	v, err := a.ask(ctx, token, audiences)
	if err != nil {
		return nil, true, err
	}
	if ttl := min(a.ttl, remaining(token, time.Now())); v.err == nil && ttl > 0 {
		a.answers.Add(key, v, ttl)
	}
	return v.who, v.who != nil || v.err != nil, v.err
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

// remaining is how long a token says that it lives on; the longest time there is for
// one that says nothing. Nobody has verified that: it can only shorten a memory.
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

// ask asks the service, several times while it is in trouble.
func (a *Authenticator) ask(ctx context.Context, token string, audiences []string) (verdict, error) {
	gvk := schema.GroupVersionKind{Group: authenticationv1.GroupName, Version: a.version, Kind: "TokenReview"}
	// Both versions have the same fields.
	question, err := json.Marshal(&authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{Kind: gvk.Kind, APIVersion: gvk.GroupVersion().String()},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	})
	if err != nil {
		return verdict{}, err
	}
	review := &authenticationv1.TokenReview{}
	if err := a.service.Ask(ctx, question, gvk, review); err != nil {
		return verdict{}, err
	}
	return a.judge(review, audiences), nil
}

// judge turns an answer into a verdict.
func (a *Authenticator) judge(review *authenticationv1.TokenReview, asked []string) verdict {
	s := &review.Status
	if !s.Authenticated {
		if s.Error != "" {
			return verdict{err: errors.New(s.Error)}
		}
		return verdict{}
	}
	good := s.Audiences
	if len(good) == 0 {
		good = a.audiences
	}
	shared := authx.Intersect(asked, good)
	if len(shared) == 0 && len(asked) > 0 {
		return verdict{}
	}
	id := &authx.Identity{Name: s.User.Username, UID: s.User.UID, Groups: s.User.Groups}
	if len(s.User.Extra) > 0 {
		id.Extra = make(map[string][]string, len(s.User.Extra))
		for k, v := range s.User.Extra {
			id.Extra[k] = v
		}
	}
	return verdict{who: &authx.Authenticated{Identity: id, Audiences: shared}}
}
