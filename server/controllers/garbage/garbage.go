// Package garbage deletes objects whose owners are gone, deletes dependents before owners that wait for them,
// and removes references if dependents are to stay.
//
// It keeps a graph of owner references (package graph), fed by the cache, and examines an object whenever a
// connected one changes. It decides by the objects in the cache, and acts through the API on condition that
// the object has not changed since. So even if the graph had missed something, nothing with an owner would be
// deleted.
//
// An object is deleted only if none of its owners exists, or if those that do wait for its deletion; not
// while the kind of an owner is unknown. Failed writes are retried after growing delays. Namespaces take
// turns.
//
// Goroutines: Run follows the cache, and starts workers, which end when they have nothing to do, or with Run,
// which waits for them.
package garbage

import (
	"context"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// Run works until ctx ends.
func (c *Collector) Run(ctx context.Context) error {
	if c.Workers <= 0 {
		c.Workers = Workers
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	s := newState(c)
	known := &progress{signal: s.notifier.signal}
	follower := &follower{state: s, progress: known, byStorage: map[string]*source{}}
	processor := &processor{state: s, progress: known, remote: newRemoteOwners(s), misplaced: newMisplaced(s)}
	var workers sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer workers.Wait()
	defer cancel()
	defer follower.stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		moved := c.Moves.Next()
		follower.follow(ctx)
		follower.feed(ctx, s.notifier.take())
		follower.catchUp(ctx)
		s.unpark()
		_, next := s.queue.AddDue()
		s.queue.StartWorkers(&workers, c.Workers, func(what graph.WorkItem) (r reconcile.Result, err error) {
			if ctx.Err() == nil && processor.process(ctx, what.ID) {
				err = reconcile.ErrRetry
			}
			return r, err
		})
		timer.Reset(follower.idle(next))
		select {
		case <-ctx.Done():
		case <-s.notifier.wake:
		case <-moved:
		case <-timer.C:
		}
	}
	return ctx.Err()
}
