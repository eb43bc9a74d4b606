package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/election"
	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/ratelog"
)

const (
	candidatesKey = "leasecandidates.coordination.k8s.io"
	leasesKey     = "leases.coordination.k8s.io"
)

// Elections chooses the holders of Leases for which components put themselves forward with
// LeaseCandidates, and removes candidates that have not renewed themselves for half an hour.
//
// What clients can cause: a look at all candidates of one Lease for each change of one of
// them or of the Lease, one Lease at a time and namespaces in turn, and four times as long
// a rest as the look and its writes took. A write of the server follows one of a client, as
// package election says.
type Elections struct {
	API   API
	Cache *cache.Cache
	Log   *slog.Logger
	Clock func() time.Time
	Moves Moves         // of the clock
	Wait  time.Duration // how long candidates have to answer; 0: election.Wait
	Retry time.Duration // how soon a failure is tried again; 0: 1 second
	Queue *Queue        // nil: the work is not measured

	contests map[place]*contest
	entries  map[place]entry // by where the candidate is
	waiting  turns
	next     time.Time // no election is due before it; zero: none is
	failed   ratelog.Line
	problems ratelog.Line
	chosen   ratelog.Line
	kept     ratelog.Line
}

// ElectionConfig says how leaders are chosen.
type ElectionConfig struct {
	Times    LeaseTimes    // of the Lease of the server that chooses
	Wait     time.Duration // how long candidates have to answer; 0: election.Wait
	Identity string        // of this server in that Lease, the same after a restart
}

// elector is the Lease of the server that chooses, as a stock server calls it.
const elector = "leader-election-controller"

// elections builds the controller, for servers that have both the feature and the candidates.
// It runs on each server, of which the holder of a Lease works: operators and tests look
// there, as they do with a stock server.
func elections(h Host, c Config) func(context.Context) error {
	r := h.Catalogue.Lookup("coordination.k8s.io", "v1alpha2", "leasecandidates")
	if c.Elections == nil || r == nil || r.Off {
		return nil
	}
	work := &Elections{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Wait: c.Elections.Wait, Queue: h.Queues.Of(elector)}
	lock := &LeaseLock{API: h.API, Log: h.Log, Clock: h.Clock, Name: elector, Identity: c.Elections.Identity, Times: c.Elections.Times, Work: work.Run}
	return lock.Run
}

// place is where an object of a namespace is.
type place struct{ namespace, name string }

// entry is what a candidate is for.
type entry struct {
	lease place
	going bool // it is being deleted, and waits for its finalizers
}

// contest is an election of one Lease that has candidates.
type contest struct {
	candidates map[string]*election.Candidate
	due        time.Time // when to look though nothing changes; zero: never
	problem    string    // why nobody could be chosen the last time
}

// The share of time that elections may take: a rest is so many times as long as the work
// before it, but no longer than a second.
const (
	electionRest    = 4
	electionLongest = time.Second
)

// removeEvery is how often expired candidates are looked for, as in a stock server.
const removeEvery = 30 * time.Minute

// Run works until ctx ends.
func (e *Elections) Run(ctx context.Context) error {
	if e.Wait == 0 {
		e.Wait = election.Wait
	}
	if e.Retry == 0 {
		e.Retry = time.Second
	}
	return again(ctx, e.Retry, func(ctx context.Context) bool {
		e.follow(ctx)
		return false
	})
}

// follow looks at all elections, then at those where something changes. It returns when a
// watcher was cut off, so that Run begins again.
func (e *Elections) follow(ctx context.Context) {
	e.contests, e.entries, e.waiting, e.next = map[place]*contest{}, map[place]entry{}, turns{}, time.Time{}
	e.Queue.Clear()
	candidates, there := e.Cache.WatchNow(candidatesKey, cache.Scope{})
	defer candidates.Stop()
	leases, _ := e.Cache.WatchNow(leasesKey, cache.Scope{})
	defer leases.Stop()
	there.Ascend("", "", "", func(item *cache.Item) bool {
		e.set(item)
		return true
	})
	remove := time.NewTimer(0)
	defer remove.Stop()
	for {
		began, moved := time.Now(), e.Moves.next()
		next := e.wake()
		var resting, due <-chan time.Time
		if key, ok := e.waiting.next(); ok {
			e.Queue.Work(func() bool { return e.look(ctx, key) })
			resting = time.After(min(electionRest*time.Since(began), electionLongest))
		} else if !next.IsZero() {
			due = time.After(next.Sub(e.Clock()))
		}
		for rested := false; !rested; {
			select {
			case <-ctx.Done():
				return
			case <-remove.C:
				remove.Reset(e.remove(ctx))
			case <-candidates.Ready():
			case <-leases.Ready():
			case <-resting:
				rested = true
			case <-due:
			case <-moved:
				moved = nil // once for each look
			}
			if !e.took(ctx, candidates, e.set, e.unset) || !e.took(ctx, leases, e.mark, e.mark) {
				return
			}
			rested = rested || resting == nil
		}
	}
}

// took hands on what a watcher has, and says whether it goes on.
func (e *Elections) took(ctx context.Context, w *cache.Watcher, set, gone func(*cache.Item)) bool {
	batch, _, err := w.Take(ctx, nil)
	if err != nil {
		return false
	}
	for _, d := range batch {
		if d.Type == cache.Deleted {
			gone(d.Item())
		} else {
			set(d.Item())
		}
	}
	return true
}

// set takes over what a candidate says now.
func (e *Elections) set(item *cache.Item) {
	var stored struct {
		Metadata struct {
			CreationTimestamp metav1.Time
			DeletionTimestamp *metav1.Time
		}
		Spec coordinationv1alpha2.LeaseCandidateSpec
	}
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), &stored) != nil {
		e.unset(item)
		return
	}
	key, lease := place{item.Namespace, item.Name}, place{item.Namespace, stored.Spec.LeaseName}
	if e.entries[key].lease != lease {
		e.unset(item)
	}
	e.entries[key] = entry{lease, stored.Metadata.DeletionTimestamp != nil}
	c := e.contests[lease]
	if c == nil {
		c = &contest{candidates: map[string]*election.Candidate{}}
		e.contests[lease] = c
	}
	c.candidates[item.Name] = election.Read(item.Name, item.Revision, stored.Metadata.CreationTimestamp, &stored.Spec)
	e.await(lease)
}

// unset forgets a candidate.
func (e *Elections) unset(item *cache.Item) {
	key := place{item.Namespace, item.Name}
	of, ok := e.entries[key]
	if !ok {
		return
	}
	delete(e.entries, key)
	c := e.contests[of.lease]
	if delete(c.candidates, item.Name); len(c.candidates) == 0 {
		delete(e.contests, of.lease)
	}
	e.await(of.lease)
}

// mark has the election of a Lease that changed looked at, if there is one.
func (e *Elections) mark(item *cache.Item) {
	if key := (place{item.Namespace, item.Name}); e.contests[key] != nil {
		e.await(key)
	}
}

// await has an election looked at.
func (e *Elections) await(key place) {
	if e.waiting.add(key) {
		e.Queue.Add(1)
	}
}

// wake has those looked at that are due, and finds when the next may be; zero: never. It
// goes through all elections only when one of them may be due, and rests as follow does.
func (e *Elections) wake() time.Time {
	began, now := time.Now(), e.Clock()
	if e.next.IsZero() || e.next.After(now) {
		return e.next
	}
	e.next = time.Time{}
	for key, c := range e.contests {
		if !c.due.IsZero() && !c.due.After(now) {
			c.due = time.Time{}
			e.await(key)
		}
		e.plan(c.due)
	}
	if rested := now.Add(electionRest * time.Since(began)); e.next.Before(rested) && !e.next.IsZero() {
		e.next = rested
	}
	return e.next
}

// plan takes over when an election is due; zero: never.
func (e *Elections) plan(due time.Time) {
	if !due.IsZero() && (e.next.IsZero() || due.Before(e.next)) {
		e.next = due
	}
}

// look takes the next step of an election, and says whether it could.
func (e *Elections) look(ctx context.Context, key place) bool {
	c := e.contests[key]
	if c == nil || len(apivalidation.NameIsDNSSubdomain(key.name, false)) > 0 {
		return true // nobody stands any more, or for a Lease that there cannot be
	}
	defer func() { e.plan(c.due) }()
	var have lease
	if !have.read(e.Cache.Get(leasesKey, key.namespace, key.name)) {
		return true // what cannot be read says nothing until it is written again
	}
	all := make([]*election.Candidate, 0, len(c.candidates))
	for _, one := range c.candidates {
		all = append(all, one)
	}
	now := e.Clock()
	step, err := election.Decide(have.spec, all, now, e.Wait)
	c.due = step.Due
	e.complain(ctx, c, key, err)
	if err = e.ask(ctx, key, step.Ask, now); err == nil && step.Lease != nil {
		err = e.write(ctx, key, &have, step.Lease)
	}
	if len(step.Ask) > questionsAtOnce && err == nil {
		e.await(key)
	}
	if err == nil || ctx.Err() != nil {
		return true
	}
	if soon := now.Add(e.Retry); c.due.IsZero() || c.due.After(soon) {
		c.due = soon
	}
	e.failed.Log(ctx, e.Log, slog.LevelWarn, "a leader cannot be chosen", "namespace", key.namespace, "lease", key.name, "error", err)
	return false
}

// complain says why nobody can be chosen, once.
func (e *Elections) complain(ctx context.Context, c *contest, key place, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != c.problem {
		e.problems.Log(ctx, e.Log, slog.LevelInfo, "nobody can be chosen to lead", "namespace", key.namespace, "lease", key.name, "reason", text)
	}
	c.problem = text
}

// turns are the elections that wait to be looked at: namespaces take turns, so that many
// elections in one keep those of others waiting for one at most.
type turns struct {
	queue fair.Queue[string, place] // by namespace
	waits map[place]bool
}

// add says whether an election did not wait yet.
func (t *turns) add(key place) bool {
	if t.waits[key] {
		return false
	}
	if t.waits == nil {
		t.waits = map[place]bool{}
	}
	t.waits[key] = true
	t.queue.Add(key.namespace, key)
	return true
}

// next takes out the election whose turn it is.
func (t *turns) next() (place, bool) {
	_, key, ok := t.queue.Next(nil)
	delete(t.waits, key)
	return key, ok
}

// lease is what counts of a Lease.
type lease struct {
	revision int64                     // 0: there is none
	spec     *coordinationv1.LeaseSpec // nil: there is none
}

// read takes over a Lease, or that there is none, and says whether it can be read.
func (l *lease) read(item *cache.Item) bool {
	if item == nil {
		return true
	}
	var stored struct{ Spec coordinationv1.LeaseSpec }
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), &stored) != nil {
		return false
	}
	l.revision, l.spec = item.Revision, &stored.Spec
	return true
}
