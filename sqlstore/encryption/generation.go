package encryption

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/keys"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms"
)

// maxName bounds the names of keys, which every value contains.
const maxName = 1024

// plugin is a KMS provider.
type plugin interface {
	sealer
	Check(ctx context.Context) error
	Close() error
}

// generation is one version of the file, while it is in use.
type generation struct {
	metrics *metrics
	rules   map[schema.GroupResource][]slot
	past    map[schema.GroupResource]bool // resources for which earlier versions had rules
	rings   sync.Map                      // resource -> *ring, nil for one without a rule
	plugins []plugin                      // in the order of the file
	names   []string                      // of the plugins
	v1, v2  bool                          // which there are
	grace   time.Duration
	stop    context.CancelFunc // ends the goroutine that Run started for it; set there
}

// builder makes a generation.
type builder struct {
	cfg *Config
	g   *generation
}

// build makes no connections yet.
func build(c *configuration, cfg *Config, m *metrics) (*generation, error) {
	b := builder{cfg: cfg, g: &generation{metrics: m, rules: map[schema.GroupResource][]slot{}, stop: func() {}}}
	for _, r := range c.Resources {
		if err := b.rule(&r); err != nil {
			return nil, errors.Join(fmt.Errorf("error while building transformers: %w", err), b.g.close())
		}
	}
	return b.g, nil
}

func (b *builder) rule(r *rule) error {
	var slots []slot
	for i := range r.Providers {
		more, err := b.provider(&r.Providers[i])
		if err != nil {
			return err
		}
		slots = append(slots, more...)
	}
	for _, name := range r.Resources {
		gr := schema.ParseGroupResource(name)
		for _, earlier := range []schema.GroupResource{{Group: gr.Group, Resource: "*"}, everything} {
			if _, masked := b.g.rules[earlier]; masked {
				return fmt.Errorf("resource %q is masked by earlier rule %q", inFile(gr), inFile(earlier))
			}
		}
		b.g.rules[gr] = append(b.g.rules[gr], slots...)
	}
	return nil
}

// inFile returns the name of a resource in a configuration file.
func inFile(gr schema.GroupResource) string {
	if gr.Group == "" && gr.Resource == "*" {
		return "*."
	}
	return gr.String()
}

func (b *builder) provider(p *provider) ([]slot, error) {
	switch {
	case p.AESGCM != nil:
		return locals("aesgcm", p.AESGCM, keys.AESGCM)
	case p.AESCBC != nil:
		return locals("aescbc", p.AESCBC, keys.AESCBC)
	case p.Secretbox != nil:
		return locals("secretbox", p.Secretbox, keys.Secretbox)
	case p.KMS != nil:
		return b.kms(p.KMS)
	}
	return []slot{{provider: "identity"}}, nil
}

func locals(kind string, list *keyList, make func([]byte) (keys.Key, error)) (slots []slot, err error) {
	for _, k := range list.Keys {
		if len(k.Name) > maxName {
			return nil, fmt.Errorf("the name of a key is %d bytes long, more than %d", len(k.Name), maxName)
		}
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return nil, fmt.Errorf("could not obtain secret for named key %s", k.Name)
		}
		key, err := make(secret)
		if err != nil {
			return nil, fmt.Errorf("error while creating cipher for named key %s: %w", k.Name, err)
		}
		slots = append(slots, named(kind, k.Name, local{key}))
	}
	return slots, nil
}

func named(kind, name string, s sealer) slot {
	return slot{provider: kind, name: name, head: []byte(sqlstore.SealHead(kind, name)), sealer: s}
}

func (b *builder) kms(k *kmsConfig) ([]slot, error) {
	if len(k.Name) > maxName {
		return nil, fmt.Errorf("the name of a KMS provider is %d bytes long, more than %d", len(k.Name), maxName)
	}
	cfg := kms.Config{Name: k.Name, Endpoint: k.Endpoint, Timeout: k.Timeout.Duration, Metrics: b.g.metrics.kms, Log: b.cfg.Log}
	if k.APIVersion == "v2" {
		p, err := kms.NewV2(cfg)
		if err != nil {
			return nil, err
		}
		b.add(p, k.Name, cfg.Timeout)
		b.g.v2 = true
		return []slot{named("kmsv2", k.Name, p)}, nil
	}
	if !b.cfg.KMSv1 {
		return nil, errors.New("KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.") //nolint:staticcheck,revive // as operators know it
	}
	b.cfg.Log.Info("KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.", "provider", k.Name)
	cfg.CacheSize = int(*k.CacheSize)
	p, err := kms.NewV1(cfg)
	if err != nil {
		return nil, err
	}
	b.add(p, k.Name, 2*cfg.Timeout) // a check makes two calls
	b.g.v1 = true
	return []slot{named("kmsv1", k.Name, p)}, nil
}

func (b *builder) add(p plugin, name string, timeout time.Duration) {
	b.g.plugins, b.g.names = append(b.g.plugins, p), append(b.g.names, name)
	b.g.grace += 2 * timeout
}

// ring finds the ring for a resource; nil: it is not encrypted.
func (g *generation) ring(resource string) *ring {
	if known, ok := g.rings.Load(resource); ok {
		return known.(*ring)
	}
	if g.metrics.name(resource) {
		g.rings.Clear()
	}
	var made *ring
	gr := schema.ParseGroupResource(resource)
	for _, at := range []schema.GroupResource{gr, {Group: gr.Group, Resource: "*"}, everything} {
		if slots, ok := g.rules[at]; ok && !strings.HasPrefix(resource, "~") { // rows of no API
			made = newRing(resource, slots, g.metrics)
			break
		}
	}
	known, _ := g.rings.LoadOrStore(resource, made)
	return known.(*ring)
}

// covers reports whether a rule of this or of an earlier version names a resource.
func (g *generation) covers(resource string) bool {
	if g.ring(resource) != nil {
		return true
	}
	gr := schema.ParseGroupResource(resource)
	return g.past[gr] || g.past[schema.GroupResource{Group: gr.Group, Resource: "*"}] || g.past[everything]
}

// follow records the resources for which earlier versions had rules.
func (g *generation) follow(old *generation) {
	g.past = make(map[schema.GroupResource]bool, len(old.past)+len(old.rules))
	for gr := range old.rules {
		g.past[gr] = true
	}
	maps.Copy(g.past, old.past)
}

// check asks all plugins at once.
func (g *generation) check(ctx context.Context) error {
	errs := make([]error, len(g.plugins))
	var group errgroup.Group
	for i, p := range g.plugins {
		group.Go(func() error {
			if err := p.Check(ctx); err != nil {
				errs[i] = fmt.Errorf("kms-provider-%d: %w", i, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs, in their order
	return utilerrors.Reduce(utilerrors.NewAggregate(errs))
}

// close ends connections and calls.
func (g *generation) close() error {
	g.stop()
	var errs []error
	for _, p := range g.plugins {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
