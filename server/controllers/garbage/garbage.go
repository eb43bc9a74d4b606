// Package garbage deletes objects whose owners are gone, lets dependents go before owners
// that wait for them, and takes references away where dependents are to stay.
//
// It keeps a graph of who refers to whom (package graph), fed by the cache, and looks at an
// object whenever one that it is connected with changes. What is to be done with it is decided
// then, by the objects as they are in memory, and done through the API, on condition that the
// object is still what was looked at. So whatever the graph might have missed, nothing is
// deleted that has an owner.
//
// It promises: an object goes only if none of its owners is there, or those that are wait for
// it to go; not while an owner is of a kind that nobody knows. What cannot be written is tried
// again, later each time. Namespaces take turns.
//
// Goroutines: Run follows the cache, and starts workers, which end when there is nothing to do
// for them, or with Run, which waits for them.
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
	known := &fed{signal: s.bell.signal}
	follower := &follower{state: s, fed: known, byStorage: map[string]*source{}}
	looker := &looker{state: s, fed: known, away: newElsewhere(s), misplaced: newMisplaced(s)}
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
		follower.feed(ctx, s.bell.answer())
		follower.catchUp(ctx)
		s.unpark()
		_, next := s.queue.Promote()
		s.queue.Work(&workers, c.Workers, func(what graph.Look) (r reconcile.Result, err error) {
			if ctx.Err() == nil && looker.look(ctx, what.ID) {
				err = reconcile.ErrRetry
			}
			return r, err
		})
		timer.Reset(follower.idle(next))
		select {
		case <-ctx.Done():
		case <-s.bell.rings:
		case <-moved:
		case <-timer.C:
		}
	}
	return ctx.Err()
}
