// Package elections runs the elections of leaders among LeaseCandidates; package election makes the decisions.
package elections

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/election"
	"github.com/rowlock/rowlock/server/ratelog"
)

const (
	// CandidatesStorage is the storage of LeaseCandidates.
	CandidatesStorage = "leasecandidates.coordination.k8s.io"

	// restShare is the pause after a reconcile, as a multiple of its duration.
	restShare = 4
	// removeEvery is the interval of checks for expired candidates, as in a stock server.
	removeEvery = 30 * time.Minute
	// longestBackoff limits the delay of an election whose writes fail.
	longestBackoff = 15 * time.Second
)

// Controller chooses the holders of Leases among LeaseCandidates, and removes candidates that were not renewed for half an
// hour.
//
// What clients can cause: each change of a candidate or of its Lease makes the controller read all candidates of that
// Lease. It reconciles one Lease at a time, namespaces in turn, and after each pauses for four times as long as that took,
// a second at most. Package election bounds the writes by those of clients.
type Controller struct {
	reconcile.Base
	Served string        // the group and version of candidates
	Wait   time.Duration // how long candidates have to answer; 0: election.Wait

	loop     *reconcile.Loop
	contests map[reconcile.Key]*leaseElection
	entries  map[reconcile.Key]entry // by where the candidate is
	problems ratelog.Line
	chosen   ratelog.Line
}

// Config configures a Controller.
type Config struct {
	Times    reconcile.LeaseTimes // of the Lease of the server that chooses
	Wait     time.Duration        // how long candidates have to answer; 0: election.Wait
	Identity string               // of this server in that Lease, the same after a restart
}

// Elector is the Lease of the server that chooses, as a stock server calls it.
const Elector = "leader-election-controller"

// Run runs on each server; the holder of the Lease named Elector chooses leaders. Operators and tests read
// that Lease, as they do with a stock server. served is the group and version in which candidates are served.
func Run(base reconcile.Base, served string, c Config) func(context.Context) error {
	work := &Controller{Base: base, Served: served, Wait: c.Wait}
	return (&reconcile.LeaderElection{Base: base, Name: Elector, Identity: c.Identity, Times: c.Times, Work: work.Run}).Run
}

// entry is the Lease and the candidate of an object.
type entry struct {
	lease reconcile.Key
	going bool // it is being deleted, and waits for its finalizers
}

// leaseElection is the election for one Lease that has candidates.
type leaseElection struct {
	candidates map[string]*election.Candidate
	problem    string // why no candidate could be chosen the last time
}

// Run works until ctx ends.
func (e *Controller) Run(ctx context.Context) error {
	e.Wait = cmp.Or(e.Wait, election.Wait)
	var removal reconcile.Key // others are Leases
	e.loop = &reconcile.Loop{Base: e.Base, Keys: []reconcile.Key{removal}, Share: restShare, Longest: longestBackoff, Failure: "cannot choose a leader"}
	e.loop.Begin = func(context.Context) error {
		e.contests, e.entries = map[reconcile.Key]*leaseElection{}, map[reconcile.Key]entry{}
		return nil
	}
	mark := func(item *cache.Item) {
		if key := reconcile.KeyOf(item); e.contests[key] != nil {
			e.loop.Queue.Add(key, 0)
		}
	}
	e.loop.Sources = []reconcile.Source{{Storage: CandidatesStorage, Seen: e.set, Gone: e.unset}, {Storage: reconcile.LeaseStorage, Changed: func(d cache.Delivery) { mark(d.Item()) }}}
	e.loop.Reconcile = func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		if key == removal {
			return reconcile.Result{After: e.remove(ctx)}, nil
		}
		return e.decide(ctx, key)
	}
	return e.loop.Run(ctx)
}

// set takes the present state of a candidate.
func (e *Controller) set(item *cache.Item) {
	var stored struct {
		Metadata struct {
			CreationTimestamp metav1.Time
			DeletionTimestamp *metav1.Time
		}
		Spec coordinationv1beta1.LeaseCandidateSpec
	}
	if !reconcile.Decode(item, &stored) {
		e.unset(item)
		return
	}
	key, lease := reconcile.KeyOf(item), reconcile.Key{Namespace: item.Namespace, Name: stored.Spec.LeaseName}
	if e.entries[key].lease != lease {
		e.unset(item)
	}
	e.entries[key] = entry{lease, stored.Metadata.DeletionTimestamp != nil}
	c := e.contests[lease]
	if c == nil {
		c = &leaseElection{candidates: map[string]*election.Candidate{}}
		e.contests[lease] = c
	}
	c.candidates[item.Name] = election.Read(item.Name, item.Revision, stored.Metadata.CreationTimestamp, &stored.Spec)
	e.loop.Queue.Add(lease, 0)
}

// unset forgets a candidate.
func (e *Controller) unset(item *cache.Item) {
	key := reconcile.KeyOf(item)
	of, ok := e.entries[key]
	if !ok {
		return
	}
	delete(e.entries, key)
	c := e.contests[of.lease]
	if delete(c.candidates, item.Name); len(c.candidates) == 0 {
		delete(e.contests, of.lease)
	}
	e.loop.Queue.Add(of.lease, 0)
}

// decide takes the next step of an election.
func (e *Controller) decide(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
	c := e.contests[key]
	if c == nil || len(apivalidation.NameIsDNSSubdomain(key.Name, false)) > 0 {
		return r, nil // no candidates are left, or the Lease's name is invalid
	}
	var have lease
	if !have.read(e.Cache.Get(reconcile.LeaseStorage, key.Namespace, key.Name)) {
		return r, nil // an unreadable Lease is left alone until its next change
	}
	now := e.Now()
	step, err := election.Decide(have.spec, slices.Collect(maps.Values(c.candidates)), now, e.Wait)
	switch {
	case len(step.Ping) > pingsAtOnce:
		r.After = 1 // others have their turn
	case !step.Due.IsZero():
		r.After = max(step.Due.Sub(now), 1)
	}
	e.logNoCandidate(ctx, c, key, err)
	if err = e.ping(ctx, key, step.Ping, now); err == nil && step.Lease != nil {
		err = e.write(ctx, key, &have, step.Lease)
	}
	return r, err
}

// logNoCandidate logs why no candidate can be chosen, once for each reason.
func (e *Controller) logNoCandidate(ctx context.Context, c *leaseElection, key reconcile.Key, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != c.problem {
		e.problems.Log(ctx, e.Log, slog.LevelInfo, "no leader can be chosen", "namespace", key.Namespace, "lease", key.Name, "reason", text)
	}
	c.problem = text
}

// lease holds the relevant fields of a Lease.
type lease struct {
	revision int64                     // 0: there is none
	spec     *coordinationv1.LeaseSpec // nil: there is none
}

// read decodes a Lease, and reports whether it is absent or readable.
func (l *lease) read(item *cache.Item) bool {
	if item == nil {
		return true
	}
	var stored struct{ Spec coordinationv1.LeaseSpec }
	if !reconcile.Decode(item, &stored) {
		return false
	}
	l.revision, l.spec = item.Revision, &stored.Spec
	return true
}
