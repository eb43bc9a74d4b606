// Package access connects what decides on requests with what the server holds:
// it feeds authorizers from the cache, answers reviews, and keeps the cluster's
// own roles.
//
// It promises: a decision that is asked for after a write was acknowledged knows
// of that write.
package access

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/cache"
)

// Source is one storage that somebody wants to know of. Set and Delete are called
// one at a time, in the order of the log; Reset before a first or a new look at
// everything.
type Source struct {
	Storage string
	Set     func(item *cache.Item)
	Delete  func(namespace, name string)
}

// Feed hands changes on to those who keep them in another form. It has no
// goroutine: Sync brings everything up to date when somebody asks.
type Feed struct {
	Sources []Source
	Reset   func() // forgets everything

	cache    atomic.Pointer[cache.Cache]
	busy     atomic.Bool
	watchers atomic.Pointer[[]*cache.Watcher]
	mu       sync.Mutex
	buf      []cache.Delivery
}

// Attach says which cache to follow. It is called once, before Sync.
func (f *Feed) Attach(c *cache.Cache) { f.cache.Store(c) }

// Sync takes in all changes that the cache knows.
func (f *Feed) Sync() {
	watchers := f.watchers.Load()
	if watchers != nil {
		waiting := false
		for _, w := range *watchers {
			waiting = waiting || len(w.Ready()) > 0
		}
		// Who takes a signal is busy before; so a signal that is gone is either
		// worked off or being worked off.
		if !waiting && !f.busy.Load() {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy.Store(true)
	defer f.busy.Store(false)
	if f.watchers.Load() == nil && !f.begin() {
		return
	}
	for i, w := range *f.watchers.Load() {
		select {
		case <-w.Ready():
		default:
			continue
		}
		batch, _, err := w.Take(context.Background(), f.buf)
		if err != nil {
			f.end()
			f.begin()
			return
		}
		for _, d := range batch {
			if item := d.Item(); d.Type == cache.Deleted {
				f.Sources[i].Delete(item.Namespace, item.Name)
			} else {
				f.Sources[i].Set(item)
			}
		}
		f.buf = batch
	}
}

// begin looks at everything there is.
func (f *Feed) begin() bool {
	c := f.cache.Load()
	if c == nil {
		return false
	}
	if f.Reset != nil {
		f.Reset()
	}
	list := make([]*cache.Watcher, len(f.Sources))
	for i, s := range f.Sources {
		w, snapshot := c.WatchNow(s.Storage, cache.Scope{})
		list[i] = w
		snapshot.Ascend("", "", "", func(item *cache.Item) bool {
			if item.Corrupt == nil {
				s.Set(item)
			}
			return true
		})
	}
	f.buf = nil
	f.watchers.Store(&list)
	return true
}

func (f *Feed) end() {
	for _, w := range *f.watchers.Load() {
		w.Stop()
	}
	f.watchers.Store(nil)
}

// Synced is an authorizer that is fed.
type Synced struct {
	Feed *Feed
	authx.Authorizer
}

// Authorize implements authx.Authorizer.
func (s Synced) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	s.Feed.Sync()
	return s.Authorizer.Authorize(ctx, a)
}

// SyncedRules is a rule resolver that is fed.
type SyncedRules struct {
	Feed *Feed
	authx.RuleResolver
}

// RulesFor implements authx.RuleResolver.
func (s SyncedRules) RulesFor(ctx context.Context, user *authx.Identity, namespace string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	s.Feed.Sync()
	return s.RuleResolver.RulesFor(ctx, user, namespace)
}
