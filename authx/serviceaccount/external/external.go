// Package external signs service account tokens with keys that another process holds: a signer on this
// machine that implements ExternalJWTSigner (k8s.io/externaljwt, v1alpha1) on a unix socket. The private key
// never enters this process.
//
// The header of an issued token has only its algorithm, its type and its key, and no key that the signer
// excludes from OIDC discovery; keys are fetched again when the signer's refresh hint expires, and when a
// token names an unknown key; while the signer is unavailable, tokens that it signed before are verified with
// the keys that it last returned.
//
// Cost, and its cause: one signature for each issued token, requested by a client with permission, at most 32
// at once; one fetch of keys at a time. Tokens of unauthenticated clients cause at most one fetch a second,
// and 256 of them wait for the answer; others are refused at once.
//
// Goroutines: those of the connection and of a fetch, which Close ends; Run is one, of its caller.
package external

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/externaljwt/apis/v1alpha1"

	"github.com/rowlock/rowlock/authx/serviceaccount"
)

const (
	// MinAge is the shortest life of tokens that a signer may insist on.
	MinAge = 10 * time.Minute

	maxAnswer = 1 << 20
	maxCalls  = 32
	maxAsking = 256 // tokens whose key is not known, and which wait for an answer
	maxKeyID  = 1 << 10
	maxKeys   = 1000
	metaTime  = 10 * time.Second
	// unknownPause is the least time between two requests for keys because of tokens whose key is
	// unknown.
	unknownPause = time.Second
	// failedPause is the time between a failed fetch and the next one.
	failedPause = 10 * time.Second
	// maxHint bounds the seconds for which the signer may let keys be cached.
	maxHint = int64(24 * time.Hour / time.Second)
)

// Config locates the signer.
type Config struct {
	Socket  string        // a path, or @ and a name
	Timeout time.Duration // of a question for keys; 0: a minute
	Log     *slog.Logger
	// Changed, if set, gets the published keys, and for how long they are valid.
	// It is called before Open returns, and by one goroutine at a time.
	Changed func(keys []serviceaccount.Key, until time.Time)
}

// Signer is a connection to a signer. It is a serviceaccount.Keys and a
// serviceaccount.Signatures.
type Signer struct {
	cfg     Config
	conn    *grpc.ClientConn
	client  v1alpha1.ExternalJWTSignerClient
	metrics *Metrics
	places  chan struct{} // of signatures
	asks    chan struct{} // places of tokens whose key is not known
	longest time.Duration

	known atomic.Pointer[known]

	life  context.Context // of the questions for keys
	end   context.CancelFunc
	group sync.WaitGroup

	mu     sync.Mutex
	closed bool
	asking *keyFetch // in flight
	asked  time.Time // when the last one ended
}

// known is the signer's last answer.
type known struct {
	keys   []serviceaccount.Key
	at     time.Time // when the signer had them from where they are
	hidden map[string]bool
	until  time.Time
}

// keyFetch is a fetch of keys, for all callers that wait for it.
type keyFetch struct {
	done chan struct{}
	err  error
}

// Open connects, and waits until the signer has named its keys and the longest life of its
// tokens, or Timeout is over.
func Open(ctx context.Context, cfg Config) (*Signer, error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute)
	s := &Signer{cfg: cfg, metrics: newMetrics(), places: make(chan struct{}, maxCalls), asks: make(chan struct{}, maxAsking)}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.known.Store(&known{})
	conn, err := grpc.NewClient("passthrough:///signer",
		grpc.WithAuthority("localhost"), grpc.WithNoProxy(), grpc.WithDisableServiceConfig(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithMaxHeaderListSize(16<<10),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second}, MinConnectTimeout: 3 * time.Second,
		}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", cfg.Socket)
		}),
		grpc.WithUnaryInterceptor(s.metrics.intercept),
	)
	if err != nil {
		s.end()
		return nil, fmt.Errorf("connecting to the signer of service account tokens: %w", err)
	}
	s.conn, s.client = conn, v1alpha1.NewExternalJWTSignerClient(conn)
	if err := s.start(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("the signer of service account tokens at %s: %w", cfg.Socket, err)
	}
	return s, nil
}

func (s *Signer) start(ctx context.Context) error {
	if err := s.refresh(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, metaTime)
	defer cancel()
	answer, err := s.client.Metadata(ctx, &v1alpha1.MetadataRequest{})
	if err != nil {
		return fmt.Errorf("asking for the longest life of its tokens: %w", err)
	}
	seconds := answer.MaxTokenExpirationSeconds
	if seconds < int64(MinAge/time.Second) {
		return fmt.Errorf("max token life supported by external-jwt-signer (%ds) is less than acceptable (min %ds)", seconds, int64(MinAge/time.Second))
	}
	s.longest = time.Duration(min(seconds, 1<<32)) * time.Second
	return nil
}

// Close ends the connection, and the calls on it.
func (s *Signer) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	err := s.conn.Close()
	s.group.Wait()
	return err
}

// Longest returns the longest life of a token that the signer takes on.
func (s *Signer) Longest() time.Duration { return s.longest }

// Metrics returns the figures of the connection.
func (s *Signer) Metrics() *Metrics { return s.metrics }

// Sign signs the claims of a token, and makes the token.
func (s *Signer) Sign(ctx context.Context, claims []byte) (token string, err error) {
	defer func() { s.metrics.signed(err) }()
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	payload := base64.RawURLEncoding.EncodeToString(claims)
	got, err := s.client.Sign(ctx, &v1alpha1.SignJWTRequest{Claims: payload})
	if err != nil {
		return "", fmt.Errorf("while signing jwt: %w", err)
	}
	if err := s.checkHeader(ctx, got.Header); err != nil {
		return "", fmt.Errorf("while validating header: %w", err)
	}
	if signature, err := base64.RawURLEncoding.DecodeString(got.Signature); err != nil || len(signature) == 0 {
		return "", errors.New("empty signature returned")
	}
	return got.Header + "." + payload + "." + got.Signature, nil
}

// checkHeader checks the header of a token: other fields in it could be believed
// by a verifier.
func (s *Signer) checkHeader(ctx context.Context, text string) error {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("while unwrapping header: %w", err)
	}
	var header map[string]string
	if err := json.Unmarshal(data, &header); err != nil {
		return errors.New("while parsing header JSON: it is no object of texts")
	}
	for name := range header {
		if name != "alg" && name != "kid" && name != "typ" {
			return errors.New("while parsing header JSON: it has more than alg, kid and typ")
		}
	}
	id := header["kid"]
	switch {
	case header["typ"] != "JWT":
		return errors.New("bad type")
	case id == "":
		return errors.New("key id missing")
	case len(id) > maxKeyID:
		return errors.New("key id longer than 1 kb")
	}
	switch header["alg"] {
	case "RS256", "ES256", "ES384", "ES512":
	default:
		return fmt.Errorf("bad signing algorithm %.20q", header["alg"])
	}
	if len(s.known.Load().of(id)) == 0 {
		// Its user may have the token: no pause.
		if err := s.refresh(ctx); err != nil {
			return err
		}
	}
	if s.known.Load().hidden[id] {
		return fmt.Errorf("key used for signing JWT (kid: %.100s) is excluded from OIDC discovery docs", id)
	}
	return nil
}

// Find implements serviceaccount.Keys: the keys of this id, and all of them for an empty
// one. An unknown id makes it ask, unless it has just asked.
func (s *Signer) Find(ctx context.Context, id string) []serviceaccount.Key {
	have := s.known.Load()
	found := have.of(id)
	if len(found) > 0 || len(id) > maxKeyID {
		return found
	}
	s.mu.Lock()
	recent := s.asking == nil && time.Since(s.asked) < unknownPause
	s.mu.Unlock()
	if recent {
		return nil
	}
	select {
	case s.asks <- struct{}{}:
		defer func() { <-s.asks }()
	default: // a stalled signer keeps no more of them
		return nil
	}
	if err := s.refresh(ctx); err != nil {
		return nil // Run reports it
	}
	return s.known.Load().of(id)
}

// Has implements serviceaccount.Keys. While the signer is unavailable, the keys that it last returned count.
func (s *Signer) Has(id string) bool { return len(s.known.Load().of(id)) > 0 }

// of finds the key of an ID.
func (k *known) of(id string) []serviceaccount.Key {
	if id == "" {
		return k.keys
	}
	for i := range k.keys {
		if k.keys[i].ID == id {
			return k.keys[i : i+1]
		}
	}
	return nil
}
