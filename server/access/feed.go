// Package access connects what decides on requests with what the server holds:
// it feeds authorizers from the cache, answers reviews, and keeps the cluster's
// own roles.
//
// It promises: a decision that is asked for after a write was acknowledged knows
// of that write.
package access

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
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
// goroutine: Enter brings everything up to date when somebody asks.
type Feed struct {
	Sources []Source
	Reset   func() // forgets everything

	cache    atomic.Pointer[cache.Cache]
	busy     atomic.Bool
	watchers atomic.Pointer[[]*cache.Watcher]
	mu       sync.Mutex
	buf      []cache.Delivery
	early    [][]cache.Delivery // by source, what is not published yet
	late     atomic.Bool        // there is some
	state    sync.RWMutex       // held for writing while changes are handed on
}

// Enter waits until all changes that the cache knows are handed on, and keeps
// further ones away until Leave: who looks in between sees the cluster as it was at
// one moment.
func (f *Feed) Enter() {
	f.sync()
	f.state.RLock()
}

// Leave ends what Enter began.
func (f *Feed) Leave() { f.state.RUnlock() }

// Attach says which cache to follow. It is called once, before Enter.
func (f *Feed) Attach(c *cache.Cache) { f.cache.Store(c) }

// sync takes in all changes that the cache knows.
func (f *Feed) sync() {
	if f.current() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy.Store(true)
	defer f.busy.Store(false)
	f.state.Lock()
	defer f.state.Unlock()
	if f.watchers.Load() == nil && !f.begin() {
		return
	}
	if err := f.take(); err != nil { // cut off: look at everything again
		f.end()
		f.begin()
	}
}

// current says that nothing is to be done. Who works is busy first, then keeps others
// out of the state, then takes signals, and last says what is late. So whoever looks
// in the opposite order either finds work, or waits for the state.
func (f *Feed) current() bool {
	watchers := f.watchers.Load()
	if watchers == nil || f.busy.Load() || f.late.Load() {
		return false
	}
	for _, w := range *watchers {
		if len(w.Ready()) > 0 {
			return false
		}
	}
	return true
}

// take hands on what the cache has published, and keeps what it has not: batches
// reach one storage after another, and no binding may be seen without the change
// of a role that came before it.
func (f *Feed) take() error {
	published, late := f.cache.Load().Revision(), false
	for i, w := range *f.watchers.Load() {
		for more := true; more; { // one who fell behind is given a page at a time
			select {
			case <-w.Ready():
				batch, _, err := w.Take(context.Background(), f.buf)
				if err != nil {
					return err
				}
				f.early[i] = append(f.early[i], batch...)
				f.buf = batch
			default:
				more = false
			}
		}
		n := 0
		for ; n < len(f.early[i]) && f.early[i][n].Revision() <= published; n++ {
			d := f.early[i][n]
			if item := d.Item(); d.Type == cache.Deleted || item.Corrupt != nil {
				f.Sources[i].Delete(item.Namespace, item.Name)
			} else {
				f.Sources[i].Set(item)
			}
		}
		f.early[i] = slices.Delete(f.early[i], 0, n)
		late = late || len(f.early[i]) > 0
	}
	f.late.Store(late)
	return nil
}

// begin looks at everything there is. f.state is held for writing.
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
	f.buf, f.early = nil, make([][]cache.Delivery, len(list))
	f.late.Store(false)
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
	// Denials is told of requests that the authorizer does not allow, whatever others
	// may say of them; nil: nobody is.
	Denials *slog.Logger
}

// Authorize implements authx.Authorizer.
func (s Synced) Authorize(ctx context.Context, a *authx.Attributes) (authx.Decision, string, error) {
	s.Feed.Enter()
	defer s.Feed.Leave()
	d, reason, err := s.Authorizer.Authorize(ctx, a)
	if d != authx.Allow && s.Denials != nil && s.Denials.Enabled(ctx, slog.LevelDebug) {
		s.deny(a, reason)
	}
	return d, reason, err
}

func (s Synced) deny(a *authx.Attributes, reason string) {
	if a.User == nil {
		return
	}
	what := fmt.Sprintf("path %q", a.Path)
	if a.ResourceRequest {
		resource := a.Resource
		if a.Subresource != "" {
			resource += "/" + a.Subresource
		}
		if a.APIGroup != "" {
			resource += "." + a.APIGroup
		}
		what = fmt.Sprintf("resource %q named %q", resource, a.Name)
		if a.Namespace == "" {
			what += " cluster-wide"
		} else {
			what += fmt.Sprintf(" in namespace %q", a.Namespace)
		}
	}
	s.Denials.Debug(fmt.Sprintf("RBAC: no rules authorize user %q with groups %q to %s %s", a.User.Name, a.User.Groups, a.Verb, what), "reason", reason)
}

// SyncedRules is a rule resolver that is fed.
type SyncedRules struct {
	Feed *Feed
	authx.RuleResolver
}

// RulesFor implements authx.RuleResolver.
func (s SyncedRules) RulesFor(ctx context.Context, user *authx.Identity, namespace string) ([]authx.ResourceRule, []authx.NonResourceRule, bool, error) {
	s.Feed.Enter()
	defer s.Feed.Leave()
	return s.RuleResolver.RulesFor(ctx, user, namespace)
}
