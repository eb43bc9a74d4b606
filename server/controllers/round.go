package controllers

import (
	"context"
	"reflect"
	"time"

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
}

// round is what a controller does that looks at objects: first at all that there are, then
// at those that change, and at those that were refused when they are due again.
type round struct {
	cache   *cache.Cache
	every   time.Duration // how long a round lasts
	retry   time.Duration // how often it is looked whether one that was refused is due
	refused *refused
	again   func(key objectKey) // tries one that was refused
	sources []source
}

// The channels that a round waits for; behind them those of its sources.
const (
	roundEnds = iota
	roundLasted
	roundRetries
	roundSources
)

// run ends when the round has lasted long enough, when a watch of it ended because changes
// came too fast, or with ctx. Each time another round is to begin, if any.
func (r *round) run(ctx context.Context) {
	timer, retries := time.NewTimer(r.every), time.NewTicker(r.retry)
	defer timer.Stop()
	defer retries.Stop()
	cases := []reflect.SelectCase{roundEnds: receive(ctx.Done()), roundLasted: receive(timer.C), roundRetries: receive(retries.C)}
	retrying := cases[roundRetries].Chan
	watchers := make([]*cache.Watcher, len(r.sources))
	snapshots := make([]*cache.Snapshot, len(r.sources))
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
		cases[roundRetries].Chan = reflect.Value{} // which never comes
		if len(r.refused.all) > 0 {
			cases[roundRetries].Chan = retrying
		}
		switch i, _, _ := reflect.Select(cases); i {
		case roundEnds, roundLasted:
			return
		case roundRetries:
			for _, key := range r.refused.due(time.Now()) {
				r.again(key)
			}
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
