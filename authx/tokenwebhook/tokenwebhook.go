// Package tokenwebhook authenticates by asking a remote service about tokens.
//
// It promises: an answer is remembered for no longer than its time, for the token
// and audiences it was about; failures are not remembered; a service that is down
// refuses the tokens that only it could judge.
package tokenwebhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/authx"
)

const (
	timeout   = 30 * time.Second
	tries     = 5
	firstWait = 500 * time.Millisecond
	maxAnswer = 3 << 20
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
	client    *http.Client
	url       string
	version   string
	audiences []string
	pause     time.Duration
	answers   answers
}

// New reads the kubeconfig. The service is not asked anything yet.
func New(c Config) (*Authenticator, error) {
	if c.Version != "v1" && c.Version != "v1beta1" {
		return nil, fmt.Errorf(`unsupported authentication webhook version %q, supported versions are "v1", "v1beta1"`, c.Version)
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig}
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Kubeconfig, err)
	}
	client.Timeout = timeout
	host := cfg.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	return &Authenticator{
		client: client, url: host + "?timeout=30s", version: c.Version, audiences: c.Audiences, pause: firstWait,
		answers: answers{ttl: c.CacheTTL, now: time.Now},
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
	v, ok := a.answers.get(key)
	if !ok {
		var err error
		if v, err = a.ask(ctx, token, audiences); err != nil {
			return nil, true, err
		}
		if v.err == nil {
			a.answers.put(key, v)
		}
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

// ask asks the service, several times while it is in trouble.
func (a *Authenticator) ask(ctx context.Context, token string, audiences []string) (verdict, error) {
	// Both versions have the same fields.
	body, err := json.Marshal(&authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{Kind: "TokenReview", APIVersion: "authentication.k8s.io/" + a.version},
		Spec:     authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	})
	if err != nil {
		return verdict{}, err
	}
	pause := a.pause
	for try := 1; ; try++ {
		review, again, err := a.post(ctx, body)
		if err == nil {
			return a.judge(review, audiences), nil
		}
		if !again || try == tries {
			return verdict{}, err
		}
		select {
		case <-ctx.Done():
			return verdict{}, ctx.Err()
		case <-time.After(pause):
			pause = pause * 3 / 2
		}
	}
}

// post asks once. again says that the service may do better next time.
func (a *Authenticator) post(ctx context.Context, body []byte) (review *authenticationv1.TokenReview, again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, */*")
	resp, err := a.client.Do(r)
	if err != nil {
		return nil, false, fmt.Errorf("asking the token webhook: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("reading the token webhook's answer: %w", err)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return nil, true, fmt.Errorf("the token webhook answers %s", resp.Status)
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, false, errors.New("the server has asked for the client to provide credentials")
	case resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated:
		return nil, false, fmt.Errorf("the token webhook answers %s", resp.Status)
	}
	review = &authenticationv1.TokenReview{}
	if err := json.Unmarshal(data, review); err != nil {
		return nil, false, fmt.Errorf("the token webhook's answer: %w", err)
	}
	if want := "authentication.k8s.io/" + a.version; review.APIVersion != want || review.Kind != "TokenReview" {
		got := strings.TrimPrefix(review.APIVersion, "authentication.k8s.io/")
		return nil, false, fmt.Errorf("converting (%s.%s) to (%s.TokenReview): unknown conversion", got, review.Kind, a.version)
	}
	return review, false, nil
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
