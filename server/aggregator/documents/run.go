package documents

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
)

// server is the known state of another API server. Its fields are guarded by Documents.mu; the values to
// which they point do not change.
type server struct {
	services  []*apiregistrationv1.APIService // that lead to it, by name
	asked     bool                            // a fetch is in flight
	again     bool                            // its APIServices have changed in the meantime
	resources due
	described due

	result  *discoveryResult // nil: not fetched yet
	opened  *descriptions    // nil: likewise
	failing bool             // which was logged
}

// due holds the time of the next attempt, and the number of failures.
type due struct {
	at       time.Time
	failures int
}

// again sets the time of the next attempt after a success.
func (d *due) again(at time.Time) { *d = due{at: at} }

// failed sets it after a failure, with growing delays up to a limit.
func (d *due) failed(now time.Time, retry, most time.Duration) {
	d.at = now.Add(min(retry<<min(d.failures, 20), most))
	d.failures++
}

// Run fetches documents until ctx ends.
func (d *Documents) Run(ctx context.Context) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	done := make(chan struct{}, 1)
	for ctx.Err() == nil {
		d.follow(ctx, &asking, done)
	}
	return nil
}

// follow starts fetches whenever an APIService changes or a fetch is due. It returns when
// the watch of APIServices was cut off, so that Run begins another.
func (d *Documents) follow(ctx context.Context, asking *sync.WaitGroup, done chan struct{}) {
	watcher, _ := d.cfg.Cache.WatchNow(aggregator.Storage, cache.Scope{})
	defer watcher.Stop()
	var batch []cache.Delivery
	for {
		next := d.begin(ctx, asking, done)
		var timer *time.Timer
		var expired <-chan time.Time
		if !next.IsZero() {
			timer = time.NewTimer(max(next.Sub(d.cfg.Clock()), 0))
			expired = timer.C
		}
		select {
		case <-ctx.Done():
		case <-expired:
		case <-done:
		case <-watcher.Ready():
			var err error
			if batch, _, err = watcher.Take(ctx, batch); err != nil {
				return
			}
			if n := len(batch); n > 0 { // a watch gets changes before readers see them
				_ = d.cfg.Cache.WaitFor(ctx, batch[n-1].Revision()) // fails with ctx alone
			}
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// begin starts the fetches that are due, each in a goroutine, and returns when
// the next one is due; zero: none is.
func (d *Documents) begin(ctx context.Context, asking *sync.WaitGroup, done chan<- struct{}) (next time.Time) {
	services := d.cfg.Services()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keep(services)
	now, under := d.cfg.Clock(), 0
	var ready []*server
	for _, s := range d.servers {
		at := s.next()
		switch {
		case s.asked:
			under++
		case !at.After(now):
			ready = append(ready, s)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	slices.SortFunc(ready, func(a, b *server) int { return a.next().Compare(b.next()) })
	for _, s := range ready[:min(len(ready), atOnce-under)] { // one has ended; start another
		s.asked, s.again = true, false
		v := fetchRound{server: s, services: s.services, resources: !s.resources.at.After(now), described: !s.described.at.After(now)}
		asking.Go(func() {
			d.visit(ctx, v)
			select {
			case done <- struct{}{}:
			default:
			}
		})
	}
	return next
}

func (s *server) next() time.Time {
	if s.described.at.Before(s.resources.at) {
		return s.described.at
	}
	return s.resources.at
}

// keep makes the servers those that APIServices lead to, and has those asked whose
// APIServices have changed.
func (d *Documents) keep(services *aggregator.Services) {
	leading := map[origin][]*apiregistrationv1.APIService{}
	for _, s := range services.All() {
		if s.Spec.Service != nil && s.Spec.Group != "" {
			leading[originOf(s)] = append(leading[originOf(s)], s)
		}
	}
	for o, s := range d.servers {
		if leading[o] == nil {
			delete(d.servers, o)
			d.changed = true
			if s.opened != nil {
				d.openAPI++
			}
		}
	}
	for o, list := range leading {
		s := d.servers[o]
		if s == nil {
			s = &server{}
			d.servers[o] = s
		}
		if slices.EqualFunc(s.services, list, func(a, b *apiregistrationv1.APIService) bool {
			return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
		}) {
			continue
		}
		s.services, s.again = list, s.asked
		s.resources = due{}
		if s.described.failures > 0 || s.opened == nil || !s.opened.covers(list) {
			s.described = due{}
		}
	}
}

// fetchRound is one round of fetches from a server.
type fetchRound struct {
	server               *server
	services             []*apiregistrationv1.APIService
	resources, described bool
}

// visit fetches from one server: its resources first, as more depends on them.
func (d *Documents) visit(ctx context.Context, v fetchRound) {
	s := v.server
	if v.resources {
		d.mu.Lock()
		last := s.result
		d.mu.Unlock()
		result := d.resources(ctx, v.services, last)
		if ctx.Err() == nil {
			d.storeDiscovery(s, result)
		}
	}
	if v.described {
		d.mu.Lock()
		last, unreachable := s.opened, s.result != nil && s.result.err != nil
		d.mu.Unlock()
		opened, err := last, errUnreachable
		if !unreachable { // otherwise it would be waited for again
			opened, err = d.describe(ctx, v.services, last)
		}
		if ctx.Err() == nil {
			d.described(s, opened, err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.asked = false
	if s.again { // its APIServices changed since the fetch began
		s.resources.at = time.Time{}
	}
}

// storeDiscovery stores a server's discovery.
func (d *Documents) storeDiscovery(s *server, result *discoveryResult) {
	bad := result.bad()
	d.mu.Lock()
	defer d.mu.Unlock()
	s.result, d.changed = result, true
	if now := d.cfg.Clock(); bad == nil {
		s.resources.again(now.Add(d.cfg.Interval))
	} else {
		s.resources.failed(now, discoveryRetry, interval)
	}
	d.note(s, bad)
}

// described stores a server's OpenAPI documents.
func (d *Documents) described(s *server, opened *descriptions, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if opened != s.opened {
		s.opened = opened
		d.openAPI++
	}
	if now := d.cfg.Clock(); err == nil {
		s.described.again(now.Add(d.cfg.Interval))
	} else {
		s.described.failed(now, openAPIRetry, openAPIRetryMost)
	}
}

// note logs once that the discovery of a server fails, and then that it works again. Errors that follow are not logged, although they may
// differ: the server, or the address that was tried, determines their texts.
func (d *Documents) note(s *server, err error) {
	if s.failing == (err != nil) {
		return
	}
	s.failing = err != nil
	var names []string
	for _, one := range s.services {
		names = append(names, one.Name)
	}
	if err == nil {
		d.cfg.Log.Info("an aggregated server serves its resource list again", "apiservices", strings.Join(names, ","))
		return
	}
	d.cfg.Log.Warn("cannot read the resource list of an aggregated server; its resources are shown as stale", "apiservices", strings.Join(names, ","), "error", err)
}
