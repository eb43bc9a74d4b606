package kms

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	api "k8s.io/kms/apis/v2"
	"k8s.io/utils/lru"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
)

const (
	// everyWell and everyIll are the intervals of status requests.
	everyWell = time.Minute
	everyIll  = 10 * time.Second
	// writable is the time for which a data key seals after the status last named its key.
	writable = 3 * time.Minute
	// maxDataKeys bounds the data keys in memory: about one for each key that the plugin had and
	// each start of a server, as long as their values are not rewritten.
	maxDataKeys = 2048
)

// V2 is a provider for version 2. One seed at a time makes the keys of its values
// (keys.FromSeed); the plugin encrypted the seed when it named a new key.
type V2 struct {
	cfg     Config
	client  api.KeyManagementServiceClient
	close   func() error
	pulse   healthCheck
	state   atomic.Pointer[state]
	version string // which the first status named; of the health check
	known   *lru.Cache
	opening callGroup[*opener]
}

// state is the current data key.
type state struct {
	keyID  string
	key    keys.Key
	before []byte // the data key as it is stored
	until  time.Time
	uses   *uses
}

// opener is a data key that the plugin opened.
type opener struct {
	keyID string
	key   keys.Key
	uses  *uses
}

// NewV2 makes a provider. It calls nothing before Check, Run or Open.
func NewV2(cfg Config) (*V2, error) {
	l, err := dial(cfg)
	if err != nil {
		return nil, fmt.Errorf("could not configure KMSv2-Plugin's probe %q, error: %w", cfg.Name, err)
	}
	return newV2(cfg, api.NewKeyManagementServiceClient(l.conn), l.close), nil
}

func newV2(cfg Config, client api.KeyManagementServiceClient, closing func() error) *V2 {
	p := &V2{cfg: cfg, client: client, close: closing, known: lru.New(maxDataKeys)}
	p.pulse.ask = p.ask
	return p
}

// Close ends the connection, and with it all calls.
func (p *V2) Close() error { return p.close() }

// Check returns whether the plugin was healthy a moment ago. It learns of new keys.
func (p *V2) Check(ctx context.Context) error { return p.pulse.check(ctx) }

// Run keeps an eye on the plugin until ctx ends. Without it values are not sealed any
// more three minutes after the last Check.
func (p *V2) Run(ctx context.Context) error {
	for {
		pause := everyWell
		if err := p.Check(ctx); err != nil {
			pause = everyIll
		}
		if !sqlstore.Sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// ask is one look at the plugin.
func (p *V2) ask(ctx context.Context) error {
	answer, err := p.client.Status(ctx, &api.StatusRequest{})
	if err != nil {
		return fmt.Errorf("failed to perform status section of the healthz check for KMS Provider %s, error: %w", p.cfg.Name, err)
	}
	var errs []error
	if answer.Healthz != "ok" {
		errs = append(errs, fmt.Errorf("got unexpected healthz status: %s", clip(answer.Healthz)))
	}
	switch {
	case answer.Version != "v2" && answer.Version != "v2beta1":
		errs = append(errs, fmt.Errorf("expected KMSv2 API version v2, got %s", clip(answer.Version)))
	case p.version == "":
		p.version = answer.Version
	case p.version != answer.Version:
		errs = append(errs, fmt.Errorf("KMSv2 API version should not change after the initial status response version %s, got %s", p.version, answer.Version))
	}
	if word, err := invalidKeyID(answer.KeyId); err != nil {
		p.cfg.Metrics.invalid.WithLabelValues(p.cfg.Name, word).Inc()
		errs = append(errs, fmt.Errorf("got invalid KMSv2 KeyID hash %q: %w", Hash(answer.KeyId), err))
	} else {
		p.cfg.Metrics.status(p.cfg.Name, answer.KeyId)
		errs = append(errs, p.follow(ctx, answer.KeyId))
	}
	if err := utilerrors.Reduce(utilerrors.NewAggregate(errs)); err != nil {
		return fmt.Errorf("kmsv2 Provider %s is not healthy, error: %w", p.cfg.Name, err)
	}
	return nil
}

// follow encrypts values with the key that the status names: the current data key is used for longer, or a
// new one is made. If that fails the old one is used until its end.
func (p *V2) follow(ctx context.Context, keyID string) error {
	until := time.Now().Add(writable) // from before the calls: they count too
	old := p.state.Load()
	if old != nil && old.keyID == keyID {
		longer := *old
		longer.until = until
		p.state.Store(&longer)
		return nil
	}
	fresh, err := p.generate(ctx)
	if err == nil && fresh.keyID != keyID {
		err = fmt.Errorf("the status names the key with hash %q, and a data key was encrypted with %q", Hash(keyID), Hash(fresh.keyID))
	}
	if err != nil {
		p.cfg.Metrics.ungenerated.Inc()
		return fmt.Errorf("failed to rotate DEK: %w", err)
	}
	fresh.until = until
	p.remember(fresh.before, &opener{fresh.keyID, fresh.key, p.uses(fromStorage, fresh.keyID)})
	p.state.Store(fresh)
	if old != nil {
		p.cfg.Log.Info("a KMS plugin has another key, with which values are encrypted from now on",
			"provider", p.cfg.Name, "key_id_hash", Hash(keyID), "old_key_id_hash", Hash(old.keyID))
	}
	return nil
}

// generate makes a data key and has the plugin encrypt it. The plugin must be able to decrypt it: values of
// an unreadable key would be lost at the next start.
func (p *V2) generate(ctx context.Context) (*state, error) {
	began := time.Now()
	seed := keys.NewSeed()
	key, err := keys.FromSeed(seed)
	if err != nil {
		return nil, err
	}
	answer, err := p.client.Encrypt(ctx, &api.EncryptRequest{Plaintext: seed, Uid: uuid.NewString()})
	if err != nil {
		return nil, fmt.Errorf("failed to encrypt DEK, error: %w", err)
	}
	w := wrapped{keyID: answer.KeyId, dataKey: answer.Ciphertext, annotations: answer.Annotations}
	if err := w.validate(); err != nil {
		return nil, err
	}
	before := w.append(nil)
	if bytes.Contains(before, seed) {
		return nil, errors.New("the plugin did not encrypt the data key")
	}
	back, err := p.decrypt(ctx, &w)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(back, seed) != 1 {
		return nil, errors.New("the plugin does not give back the data key that it encrypted")
	}
	p.cfg.Metrics.generated.Observe(time.Since(began).Seconds())
	return &state{keyID: w.keyID, key: key, before: before, uses: p.uses(toStorage, w.keyID)}, nil
}

func (p *V2) uses(way, keyID string) *uses { return p.cfg.Metrics.of(way, p.cfg.Name, Hash(keyID)) }

func (p *V2) decrypt(ctx context.Context, w *wrapped) ([]byte, error) {
	answer, err := p.client.Decrypt(ctx, &api.DecryptRequest{Ciphertext: w.dataKey, Uid: uuid.NewString(), KeyId: w.keyID, Annotations: w.annotations})
	if err != nil {
		return nil, fmt.Errorf("failed to decrypt DEK, error: %w", err)
	}
	return answer.Plaintext, nil
}

// Seal returns the bytes to store after head. It calls no plugin.
func (p *V2) Seal(_ context.Context, head []byte, row sqlstore.Key, plain []byte) ([]byte, error) {
	s := p.state.Load()
	if s == nil {
		if why, _ := p.pulse.last(); why != nil {
			return nil, fmt.Errorf("%w: no data key was made yet: %w", sqlstore.ErrKeyUnavailable, why)
		}
		return nil, fmt.Errorf("%w: no data key was made yet", sqlstore.ErrKeyUnavailable)
	}
	if now := time.Now(); now.After(s.until) {
		return nil, fmt.Errorf("%w: encryptedDEKSource with keyID hash %q expired at %s (current time is %s)",
			sqlstore.ErrKeyUnavailable, Hash(s.keyID), s.until.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	s.uses.add()
	out := make([]byte, 0, len(head)+len(s.before)+len(plain)+s.key.Overhead())
	out = append(append(out, head...), s.before...)
	return s.key.Seal(out, plain, bind(out, row)), nil
}

// bind returns the place of a value: its row, and all bytes stored before it.
func bind(stored []byte, row sqlstore.Key) []byte {
	return keys.Bound(append(make([]byte, 0, len(stored)+128), stored...), row.Resource, row.Namespace, row.Name)
}

// Open decrypts a value of Seal with a head of some length. stale: the plugin has another key now.
func (p *V2) Open(ctx context.Context, stored []byte, head int, row sqlstore.Key) (plain []byte, stale bool, err error) {
	size, err := skip(stored[head:])
	if err != nil {
		return nil, false, err
	}
	before, sealed := stored[head:head+size], stored[head+size:]
	bound := bind(stored[:head+size], row)
	o, err := p.opener(ctx, before, sealed, bound)
	if err != nil {
		return nil, false, err
	}
	o.uses.add()
	plain, err = o.key.Open(sealed, bound)
	if err != nil {
		return nil, false, err
	}
	s := p.state.Load()
	return plain, s != nil && s.keyID != o.keyID, nil
}

// opener finds a data key in memory or calls the plugin. It is cached if it decrypts the caller's value,
// which proves that it is the right one.
func (p *V2) opener(ctx context.Context, before, sealed, bound []byte) (*opener, error) {
	mark := fingerprint(before)
	if known, ok := p.known.Get(mark); ok {
		return known.(*opener), nil
	}
	p.cfg.Metrics.misses.Inc()
	return p.opening.do(ctx, string(mark[:]), func(ctx context.Context) (*opener, error) {
		if known, ok := p.known.Get(mark); ok { // another caller asked in between
			return known.(*opener), nil
		}
		w, err := unwrap(before)
		if err != nil {
			return nil, err
		}
		seed, err := p.decrypt(ctx, w)
		if err != nil {
			return nil, err
		}
		key, err := keys.FromSeed(seed)
		if err != nil {
			return nil, fmt.Errorf("the plugin returned an invalid data key: %w", err)
		}
		o := &opener{w.keyID, key, p.uses(fromStorage, w.keyID)}
		if _, err := key.Open(sealed, bound); err == nil {
			p.remember(before, o)
		}
		return o, nil
	})
}

func (p *V2) remember(before []byte, o *opener) {
	p.known.Add(fingerprint(before), o)
	p.cfg.Metrics.cached.WithLabelValues(p.cfg.Name).Set(float64(p.known.Len()))
}
