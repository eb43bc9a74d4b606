package kms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	api "k8s.io/kms/apis/v1beta1"
	"k8s.io/utils/lru"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
)

const (
	v1Version = "v1beta1"
	// maxV1Key bounds the encrypted data keys of version 1, which its protocol does not.
	maxV1Key = 32 << 10
)

// V1 is a provider for version 1, where each value has a data key of its own.
type V1 struct {
	cfg     Config
	client  api.KeyManagementServiceClient
	close   func() error
	pulse   healthCheck
	known   *lru.Cache // nil: nothing is kept
	opening callGroup[keys.Key]

	mu      sync.Mutex
	checked bool // the version
}

// NewV1 makes a provider. It calls nothing before Check, Seal or Open.
func NewV1(cfg Config) (*V1, error) {
	l, err := dial(cfg)
	if err != nil {
		return nil, fmt.Errorf("could not configure KMSv1-Plugin's probe %q, error: %w", cfg.Name, err)
	}
	p := &V1{cfg: cfg, client: api.NewKeyManagementServiceClient(l.conn), close: l.close}
	if cfg.CacheSize > 0 {
		p.known = lru.New(cfg.CacheSize)
	}
	p.pulse.ask = p.ask
	return p, nil
}

// Close ends the connection, and with it all calls.
func (p *V1) Close() error { return p.close() }

// Check returns whether the plugin was healthy a moment ago.
func (p *V1) Check(ctx context.Context) error { return p.pulse.check(ctx) }

func (p *V1) ask(ctx context.Context) error {
	ping := []byte("ping")
	sealed, err := p.encrypt(ctx, ping)
	if err != nil {
		return fmt.Errorf("failed to perform encrypt section of the healthz check for KMS Provider %s, error: %w", p.cfg.Name, err)
	}
	back, err := p.decrypt(ctx, sealed)
	if err == nil && !bytes.Equal(back, ping) {
		err = errors.New("the plugin does not give back what it encrypted")
	}
	if err != nil {
		return fmt.Errorf("failed to perform decrypt section of the healthz check for KMS Provider %s, error: %w", p.cfg.Name, err)
	}
	return nil
}

// agree requests the version until it was right once. It holds no lock during the call.
func (p *V1) agree(ctx context.Context) error {
	p.mu.Lock()
	checked := p.checked
	p.mu.Unlock()
	if checked {
		return nil
	}
	answer, err := p.client.Version(ctx, &api.VersionRequest{Version: v1Version})
	if err != nil {
		return fmt.Errorf("failed get version from remote KMS provider: %w", err)
	}
	if answer.Version != v1Version {
		return fmt.Errorf("KMS provider api version %s is not supported, only %s is supported now", clip(answer.Version), v1Version)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = true
	return nil
}

func (p *V1) encrypt(ctx context.Context, plain []byte) ([]byte, error) {
	if err := p.agree(ctx); err != nil {
		return nil, err
	}
	answer, err := p.client.Encrypt(ctx, &api.EncryptRequest{Version: v1Version, Plain: plain})
	if err != nil {
		return nil, err
	}
	switch size := len(answer.Cipher); {
	case size == 0:
		return nil, errors.New("the plugin answered with nothing")
	case size > maxV1Key:
		return nil, fmt.Errorf("the plugin made %d bytes of a data key, more than %d", size, maxV1Key)
	}
	return answer.Cipher, nil
}

func (p *V1) decrypt(ctx context.Context, sealed []byte) ([]byte, error) {
	if err := p.agree(ctx); err != nil {
		return nil, err
	}
	answer, err := p.client.Decrypt(ctx, &api.DecryptRequest{Version: v1Version, Cipher: sealed})
	if err != nil {
		return nil, err
	}
	return answer.Plain, nil
}

// Seal makes the bytes that are stored behind head. It asks the plugin.
func (p *V1) Seal(ctx context.Context, head []byte, row sqlstore.Key, plain []byte) ([]byte, error) {
	p.cfg.Metrics.arrival(toStorage)
	began := time.Now()
	secret := keys.NewSeed()
	key, err := keys.Once(secret)
	if err != nil {
		p.cfg.Metrics.ungenerated.Inc()
		return nil, err
	}
	p.cfg.Metrics.generated.Observe(time.Since(began).Seconds())
	sealed, err := p.encrypt(ctx, secret)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(sealed, secret) {
		return nil, errors.New("the plugin did not encrypt the data key")
	}
	p.remember(sealed, key)
	out := make([]byte, 0, len(head)+len(sealed)+8+len(plain)+key.Overhead())
	out = appendBytes(append(out, head...), sealed)
	return key.Seal(out, plain, bind(out, row)), nil
}

// Open decrypts a value of Seal with a head of some length. It is never stale: version 1 does not report new
// keys.
func (p *V1) Open(ctx context.Context, stored []byte, head int, row sqlstore.Key) (plain []byte, stale bool, err error) {
	p.cfg.Metrics.arrival(fromStorage)
	r := reader{rest: stored[head:]}
	wrapped := r.take(maxV1Key)
	if r.bad || len(wrapped) == 0 {
		return nil, false, errWire
	}
	key, fresh, err := p.opener(ctx, wrapped)
	if err != nil {
		return nil, false, err
	}
	plain, err = key.Open(r.rest, bind(stored[:len(stored)-len(r.rest)], row))
	if err != nil {
		return nil, false, err
	}
	if fresh {
		p.remember(wrapped, key)
	}
	return plain, false, nil
}

func (p *V1) opener(ctx context.Context, wrapped []byte) (key keys.Key, fresh bool, err error) {
	mark := fingerprint(wrapped)
	if p.known != nil {
		if known, ok := p.known.Get(mark); ok {
			return known.(keys.Key), false, nil
		}
		p.cfg.Metrics.misses.Inc()
	}
	key, err = p.opening.do(ctx, string(mark[:]), func(ctx context.Context) (keys.Key, error) {
		secret, err := p.decrypt(ctx, wrapped)
		if err != nil {
			return nil, err
		}
		key, err := keys.Once(secret)
		if err != nil {
			return nil, fmt.Errorf("the plugin returned an invalid data key: %w", err)
		}
		return key, nil
	})
	return key, true, err
}

func (p *V1) remember(wrapped []byte, key keys.Key) {
	if p.known == nil {
		return
	}
	p.known.Add(fingerprint(wrapped), key)
	p.cfg.Metrics.fill.Set(float64(p.known.Len()) / float64(p.cfg.CacheSize))
}
