package controllers

import (
	"context"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/server/cache"
)

// source is a storage that a controller follows.
type source struct {
	storage string
	scope   cache.Scope
	// there is shown each object that there is when a round begins, until it says false;
	// nil: only changes count.
	there func(item *cache.Item) bool
	// changed is told of what changes after that.
	changed func(batch []cache.Delivery)
	// lost is told, by a desk, that the storage is not followed any more, as what is in it
	// changed too fast or is not served as it was; nil: the run of the desk ends.
	lost func()
}

// round is what a controller does that looks at objects: first at all that there are, then
// at those that change, and at those that were refused when they are due again.
type round struct {
	cache   *cache.Cache
	every   time.Duration // how long a round lasts
	retry   time.Duration // how often it is looked whether one that was refused is due
	refused *refused
	moves   Moves               // of the clock: what waits is tried at once then
	settled settled             // those that are to be left alone at first
	again   func(key objectKey) // tries one that was refused, or has been left alone
	sources []source

	together int // how many are tried at once, which share commits, of a new server's thousands too; 0: one
	trying   errgroup.Group
	under    map[objectKey]bool // those that are tried; true: once more when that is over
}

// several is how many objects a controller tries at once whose tries do not mind each other.
const several = 16

// see tries an object, at once or when it has been left alone long enough.
func (r *round) see(key objectKey) {
	if !r.settled.wait(key, time.Now()) {
		r.try(key)
	}
}

// try tries some objects. One that is being tried is tried again behind that, once however often it is asked for:
// at once it would meet itself, and each failure would count.
func (r *round) try(keys ...objectKey) {
	for _, key := range keys {
		if r.together == 0 {
			r.again(key)
			continue
		}
		if _, is := r.under[key]; is {
			r.under[key] = true
			continue
		}
		if r.under == nil {
			r.under = map[objectKey]bool{}
		}
		r.under[key] = false
		r.trying.Go(func() error {
			r.again(key)
			return nil
		})
	}
}

// tried waits until all have been tried.
func (r *round) tried() {
	for len(r.under) > 0 {
		_ = r.trying.Wait() // none fails
		under := r.under
		r.under = nil
		for key, again := range under {
			if again {
				r.try(key)
			}
		}
	}
}

// namespaces is the storage of namespaces, each of which is tried when it is there and when it
// changes.
func (r *round) namespaces() source {
	return source{
		storage: "namespaces",
		there: func(item *cache.Item) bool {
			r.see(objectKey{namespace: item.Name})
			return true
		},
		changed: func(batch []cache.Delivery) {
			for _, d := range batch {
				if d.Type != cache.Deleted {
					r.see(objectKey{namespace: d.Item().Name})
				}
			}
		},
	}
}

// The channels that a round waits for; behind them those of its sources.
const (
	roundEnds = iota
	roundLasted
	roundRetries
	roundSettled
	roundMoved
	roundSources
)

// run ends when the round has lasted long enough, when a watch of it ended because changes
// came too fast, or with ctx. Each time another round is to begin, if any.
func (r *round) run(ctx context.Context) {
	r.trying.SetLimit(max(1, r.together))
	defer r.tried()
	timer, retries := time.NewTimer(r.every), time.NewTicker(r.retry)
	defer timer.Stop()
	defer retries.Stop()
	cases := []reflect.SelectCase{roundEnds: receive(ctx.Done()), roundLasted: receive(timer.C), roundRetries: receive(retries.C), roundSettled: {Dir: reflect.SelectRecv}, roundMoved: {Dir: reflect.SelectRecv}}
	retrying := cases[roundRetries].Chan
	watchers := make([]*cache.Watcher, len(r.sources))
	snapshots := make([]*cache.Snapshot, len(r.sources))
	cases[roundMoved] = receive(r.moves.next())
	for i, s := range r.sources { // all are watched before anything is looked at
		watchers[i], snapshots[i] = r.cache.WatchNow(s.storage, s.scope)
		defer watchers[i].Stop()
		cases = append(cases, receive(watchers[i].Ready()))
	}
	for i, s := range r.sources {
		if s.there != nil {
			snapshots[i].Ascend("", "", "", func(item *cache.Item) bool { return s.there(item) && ctx.Err() == nil })
		}
	}
	var batch []cache.Delivery
	for ctx.Err() == nil {
		r.tried()
		cases[roundRetries].Chan = reflect.Value{} // which never comes
		if !r.refused.none() {
			cases[roundRetries].Chan = retrying
		}
		cases[roundSettled].Chan = reflect.ValueOf(r.settled.next(time.Now()))
		switch i, _, _ := reflect.Select(cases); i {
		case roundEnds, roundLasted:
			return
		case roundRetries:
			r.try(r.refused.due(time.Now())...)
		case roundSettled:
			r.try(r.settled.due(time.Now())...)
		case roundMoved:
			cases[roundMoved] = receive(r.moves.next())
			now := time.Now()
			r.refused.hurry(now)
			r.try(append(r.settled.all(), r.refused.due(now)...)...)
		default:
			var err error
			if batch, _, err = watchers[i-roundSources].Take(ctx, batch); err != nil {
				return
			}
			r.sources[i-roundSources].changed(batch)
		}
	}
}

func receive(channel any) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(channel)}
}
