package controllers

import (
	"context"
	"log/slog"
	"time"

	"github.com/rowlock/rowlock/server/cache"
)

// Chore is what controllers have in common that keep one agenda, of what others change.
type Chore struct {
	API    API
	Cache  *cache.Cache
	Log    *slog.Logger
	Clock  func() time.Time
	Moves  Moves         // of the clock
	Settle time.Duration // how long what has changed is left alone at first
	Retry  time.Duration // how soon a failure is tried again; 0: 1 second
	Queue  *Queue        // nil: the work is not measured
}

// choreOf is the chore that a host lends the work of a switch, measured by a queue of a name.
func choreOf(h Host, c Config, work, queue string) Chore {
	return Chore{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Settle: c.Settle(work), Queue: h.Queues.Of(queue)}
}

// run works until ctx ends: look does what there is to do for a key. Each time that everything
// is to be looked at anew, sources says what fills the agenda.
func (c *Chore) run(ctx context.Context, look func(context.Context, *agenda, objectKey) bool, sources func(context.Context, *agenda) []source) error {
	if c.Retry == 0 {
		c.Retry = time.Second
	}
	list := &agenda{settle: c.Settle, first: c.Retry, longest: mostRest, queue: c.Queue}
	return again(ctx, c.Retry, func(ctx context.Context) bool {
		d := &desk{cache: c.Cache, clock: c.Clock, agendas: []*agenda{list}, moves: c.Moves, look: look}
		d.run(ctx, sources(ctx, list)...)
		return true
	})
}

// objectsOf is a storage of which touch is shown each object that there is, until ctx ends, and
// each that changes, and gone each that goes.
func objectsOf(ctx context.Context, storage string, touch, gone func(*cache.Item)) source {
	return source{
		storage: storage,
		there: func(item *cache.Item) bool {
			touch(item)
			return ctx.Err() == nil
		},
		changed: func(batch []cache.Delivery) {
			for _, d := range batch {
				if d.Type == cache.Deleted {
					gone(d.Item())
				} else {
					touch(d.Item())
				}
			}
		},
	}
}
