// Package encryption encrypts and decrypts stored values according to an EncryptionConfiguration.
//
// The first provider of a resource's rule encrypts a value; whichever provider encrypted it decrypts it. A
// ciphertext is bound to its row, so that swapped rows do not decrypt. A file takes effect as a whole or not at
// all; while a changed file is invalid, the previous one stays in effect. Secrets reach no log and no error.
//
// A value costs some microseconds and some dozens of bytes; see package kms for KMS plugins. Every client that may
// write or read the resource causes this cost. A resource has two series of metrics for each provider of its rule; the
// series of resources begin anew when maxResources have some.
//
// Goroutines: Run is one. It owns those that watch KMS plugins and the file, and those that close connections of
// an older file. Open and Check ask several plugins concurrently and wait for them.
package encryption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/authx/freshfile"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms"
)

// Config locates the configuration.
type Config struct {
	Path       string
	Reload     bool          // the file is read again when it changes
	Every      time.Duration // how often it is checked; 0: every second
	KMSv1      bool          // version 1 of the KMS protocol may be used
	ServerHash string        // identifies this server in metrics
	Log        *slog.Logger  // nil: nothing is logged
}

// Set is a Sealer by a file.
type Set struct {
	cfg     Config
	metrics *metrics
	text    []byte // of the file, when it was opened
	current atomic.Pointer[generation]

	mu      sync.Mutex
	retired map[*generation]bool // which are closed in a while
}

var _ sqlstore.Sealer = (*Set)(nil)

// Check is a health check, with the name that a stock server gives it.
type Check struct {
	Name  string
	Probe func(context.Context) error
}

// Open reads the file and asks the KMS plugins for the first time. That one of them does
// not answer is no error: Run asks again. The Set has connections, which Close ends.
func Open(ctx context.Context, cfg Config) (*Set, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Every = cmp.Or(cfg.Every, time.Second)
	text, err := os.ReadFile(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("error while parsing file: error while loading file: error reading encryption provider configuration file %q: %w", cfg.Path, err)
	}
	s := &Set{cfg: cfg, metrics: newMetrics(cfg.ServerHash), text: text, retired: map[*generation]bool{}}
	g, err := s.read(text)
	if err != nil {
		return nil, err
	}
	if err := g.check(ctx); err != nil {
		cfg.Log.Warn("a KMS plugin is not healthy; checking it again", "error", err)
	}
	s.current.Store(g)
	return s, nil
}

func (s *Set) read(text []byte) (*generation, error) {
	c, err := parse(s.cfg.Path, text, s.cfg.Reload)
	if err != nil {
		return nil, fmt.Errorf("error while parsing file: %w", err)
	}
	return build(c, &s.cfg, s.metrics)
}

// Seal implements sqlstore.Sealer.
func (s *Set) Seal(ctx context.Context, row sqlstore.Key, plain []byte) ([]byte, error) {
	if r := s.current.Load().ring(row.Resource); r != nil {
		return r.seal(ctx, row, plain)
	}
	return plain, nil
}

// Open implements sqlstore.Sealer.
func (s *Set) Open(ctx context.Context, row sqlstore.Key, stored []byte) (plain []byte, stale bool, err error) {
	if r := s.current.Load().ring(row.Resource); r != nil {
		return r.open(ctx, row, stored)
	}
	return sqlstore.NoEncryption{}.Open(ctx, row, stored)
}

// Covers implements sqlstore.Sealer. A resource that an earlier version of the file named
// may have values that this one does not open, and memory has them open.
func (s *Set) Covers(resource string) bool { return s.current.Load().covers(resource) }

// Collectors returns the metrics.
func (s *Set) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.metrics, s.metrics.kms}
}

// Checks returns the health checks of the KMS plugins. They count for /healthz and /readyz, not for
// /livez: a restart does not repair a plugin.
func (s *Set) Checks() []Check {
	g := s.current.Load()
	if s.cfg.Reload || g.v2 && !g.v1 {
		return []Check{{"kms-providers", func(ctx context.Context) error { return s.current.Load().check(ctx) }}}
	}
	var list []Check
	for i, p := range g.plugins {
		list = append(list, Check{fmt.Sprintf("kms-provider-%d", i), p.Check})
	}
	return list
}

// Run watches KMS plugins, and the file if it is to be reloaded, until ctx ends. It returns
// nil at once if there is neither.
func (s *Set) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	s.watchKeys(ctx, group, s.current.Load())
	if s.cfg.Reload {
		follower := &freshfile.Follower{
			Path: s.cfg.Path, Seen: s.text, Every: s.cfg.Every, Took: s.took,
			Take: func(attempt context.Context, text []byte) error { return s.take(attempt, ctx, group, text) },
		}
		group.Go(func() error { return follower.Run(ctx) })
	}
	return group.Wait()
}

// watchKeys watches the plugins of a generation until it is closed.
func (s *Set) watchKeys(ctx context.Context, group *errgroup.Group, g *generation) {
	ctx, g.stop = context.WithCancel(ctx)
	for _, p := range g.plugins {
		if p, ok := p.(*kms.V2); ok {
			group.Go(func() error {
				if err := p.Run(ctx); !errors.Is(err, context.Canceled) {
					return err
				}
				return nil
			})
		}
	}
}

const (
	// minHealthy is the least time that the plugins of a changed file have to become healthy.
	minHealthy = 10 * time.Second
	askHealthy = 100 * time.Millisecond
)

// take takes over a changed file, once all its plugins are well. run is how long Run lasts.
func (s *Set) take(ctx, run context.Context, group *errgroup.Group, text []byte) error {
	fresh, err := s.read(text)
	if err != nil {
		return err
	}
	if err := fresh.wait(ctx); err != nil {
		return errors.Join(err, fresh.close())
	}
	s.watchKeys(run, group, fresh)
	fresh.follow(s.current.Load()) // only this goroutine replaces it
	old := s.current.Swap(fresh)
	s.mu.Lock()
	s.retired[old] = true
	s.mu.Unlock()
	group.Go(func() error { // calls in flight may still need the old connections
		timer := time.NewTimer(old.grace)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-run.Done():
		}
		return s.retire(old)
	})
	return nil
}

func (s *Set) retire(g *generation) error {
	s.mu.Lock()
	there := s.retired[g]
	delete(s.retired, g)
	s.mu.Unlock()
	if !there {
		return nil
	}
	if err := g.close(); err != nil {
		s.cfg.Log.Warn("cannot close the connection to a KMS plugin of an older configuration", "error", err)
	}
	used := s.current.Load().names
	for _, name := range g.names {
		if !slices.Contains(used, name) {
			s.metrics.kms.Forget(name)
		}
	}
	return nil
}

// wait waits until all plugins are well.
func (g *generation) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(g.grace, minHealthy))
	defer cancel()
	tick := time.NewTicker(askHealthy)
	defer tick.Stop()
	for {
		err := g.check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("health check for new transformers failed: %w", err)
		}
	}
}

func (s *Set) took(err error, repeated bool) {
	s.metrics.reload(err)
	switch {
	case err == nil:
		s.cfg.Log.Info("the encryption configuration has changed and is in use", "file", s.cfg.Path)
	case !repeated:
		s.cfg.Log.Error("the encryption configuration has changed and cannot be used; the one before stays", "file", s.cfg.Path, "error", err)
	}
}

// Close ends all connections. Run must have returned.
func (s *Set) Close() error {
	s.mu.Lock()
	list := slices.AppendSeq([]*generation{s.current.Load()}, maps.Keys(s.retired))
	clear(s.retired)
	s.mu.Unlock()
	var errs []error
	for _, g := range list {
		errs = append(errs, g.close())
	}
	return errors.Join(errs...)
}
