package aggregator

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/status"
)

// How servers are looked after.
const (
	pollInterval = 250 * time.Millisecond // at the objects in memory that lead to a server
	firstPause   = time.Second            // before the next check of a server that failed; then twice as long each time, up to recheck
	maxChecks    = 32                     // at once
)

// checkedService is the availability of a server, and the time of its next check. The loop of Run
// writes it, with Aggregator.mu held where others read.
type checkedService struct {
	Availability
	uid types.UID

	service *apiregistrationv1.APIService
	seen    resolvedObjects // at the last check
	due     time.Time
	pause   time.Duration
	running bool
}

// checkResult is the end of a check.
type checkResult struct {
	v            *checkedService
	service      *apiregistrationv1.APIService // as it was when the check began
	availability Availability
}

// Run finds out, until ctx ends, which servers this one can use. While no APIService leads
// to another server it does nothing but wait for one.
func (a *Aggregator) Run(ctx context.Context) error {
	var checks sync.WaitGroup
	defer checks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &checker{a: a, done: make(chan checkResult, maxChecks), checks: &checks, known: map[string]*checkedService{}}
	for ctx.Err() == nil {
		c.follow(ctx)
	}
	return nil
}

// checker is the state of Run, and belongs to its goroutine.
type checker struct {
	a       *Aggregator
	taken   *Services
	known   map[string]*checkedService
	done    chan checkResult
	running int
	checks  *sync.WaitGroup
}

// follow works until ctx ends or its watch is cut off.
func (c *checker) follow(ctx context.Context) {
	w, _ := c.a.cfg.Cache.WatchNow(Storage, cache.Scope{})
	defer w.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var batch []cache.Delivery
	var err error
	for {
		c.take()
		c.begin(ctx)
		look := tick.C
		if len(c.known) == 0 {
			look = nil
			tick.Stop()
		} else {
			tick.Reset(pollInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-look:
		case o := <-c.done:
			c.end(ctx, o)
		case <-w.Ready():
			if batch, _, err = w.Take(ctx, batch); err != nil {
				return
			}
			if n := len(batch); n > 0 { // a watch gets changes before readers see them
				_ = c.a.cfg.Cache.WaitFor(ctx, batch[n-1].Revision()) // fails with ctx alone
			}
		}
	}
}

// take takes the APIServices as they are now.
func (c *checker) take() {
	services := c.a.Services()
	if services == c.taken {
		return
	}
	c.taken = services
	remote := services.remote
	left := make(map[string]bool, len(remote))
	for _, s := range remote {
		left[s.Name] = true
		v := c.known[s.Name]
		if v == nil || v.uid != s.UID {
			v = &checkedService{uid: s.UID}
			if helper.IsAPIServiceConditionTrue(s, apiregistrationv1.Available) {
				v.Availability = passed // as it was left, until it is checked
			}
			c.known[s.Name] = v
			c.a.store(s.Name, v)
		}
		if v.service != nil && !sameServer(v.service, s) {
			v.due, v.pause = time.Time{}, 0 // it leads elsewhere
		}
		v.service = s
	}
	for name := range c.known {
		if !left[name] {
			delete(c.known, name)
			c.a.store(name, nil)
		}
	}
}

// sameServer reports whether two states of an APIService lead to one server.
func sameServer(a, b *apiregistrationv1.APIService) bool {
	return keyOf(a) == keyOf(b) && portOf(a.Spec.Service) == portOf(b.Spec.Service)
}

// begin begins the checks that are due.
func (c *checker) begin(ctx context.Context) {
	now := time.Now()
	for _, v := range c.known {
		if c.running >= maxChecks {
			return
		}
		if v.running {
			continue
		}
		if seen := c.a.leading(v.service.Spec.Service, v.available()); seen != v.seen {
			v.seen, v.pause = seen, 0
		} else if now.Before(v.due) {
			continue
		}
		v.running = true
		c.running++
		service := v.service
		c.checks.Go(func() {
			o := checkResult{v: v, service: service}
			if unread := cache.Try(func() { o.availability = c.a.check(ctx, service) }); unread != nil {
				o.availability = Availability{apiregistrationv1.ConditionUnknown, "ServiceAccessError", status.Brief(unread.Error(), maxMessage)}
			}
			select {
			case c.done <- o:
			case <-ctx.Done():
			}
		})
	}
}

// end takes note of how a check ended.
func (c *checker) end(ctx context.Context, o checkResult) {
	c.running--
	v := o.v
	v.running = false
	if ctx.Err() != nil {
		return // it was cut short
	}
	if !sameServer(o.service, v.service) {
		return // it is about another server; this one is checked next
	}
	switch {
	case o.availability.available():
		v.pause, v.due = 0, time.Now().Add(recheck)
	case v.pause == 0:
		v.pause = firstPause
		v.due = time.Now().Add(v.pause)
	default:
		v.pause = min(2*v.pause, recheck)
		v.due = time.Now().Add(v.pause)
	}
	if c.known[v.service.Name] == v {
		c.a.judged(v, o.availability)
	}
}

// store publishes the availability of an APIService to requests; nil removes it.
func (a *Aggregator) store(name string, v *checkedService) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v != nil {
		a.verdicts[name] = v
		return
	}
	delete(a.verdicts, name)
	for t := range a.turned {
		if t.name == name {
			delete(a.turned, t)
		}
	}
}

// judged replaces the availability of a server.
func (a *Aggregator) judged(v *checkedService, by Availability) {
	a.mu.Lock()
	old := v.Availability
	v.Availability = by
	if old.available() && !by.available() {
		a.turned[turn{v.service.Name, by.Reason}]++
	}
	a.mu.Unlock()
	if old != by {
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
}

// Changed has an element whenever an availability has changed. It is for one
// receiver.
func (a *Aggregator) Changed() <-chan struct{} { return a.changed }
