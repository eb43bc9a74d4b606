package controllers

import (
	"context"
	"reflect"
	"time"

	"github.com/rowlock/rowlock/server/cache"
)

// desk is what a controller does that works through agendas: it follows storages, which
// fill them, and looks at one key after the other. All of it is one goroutine, that of run.
type desk struct {
	cache *cache.Cache
	clock func() time.Time
	// agendas are worked through in this order: nothing of one is looked at while
	// something of one before is due.
	agendas []*agenda
	moves   Moves // of the clock
	// look does what there is to do for a key of an agenda, and tells the agenda. It says
	// whether that could be done.
	look func(ctx context.Context, a *agenda, key objectKey) bool

	sources  []source // those that run was given are the first
	given    int      // so many
	watchers []*cache.Watcher
	cases    []reflect.SelectCase // those of the sources are behind the first
	batch    []cache.Delivery     // reused
}

// The channels that a desk waits for; behind them those of its sources.
const (
	deskEnds = iota
	deskDue
	deskMoved
	deskSources
)

// longestWait is how long a desk waits at most when something is due later: the clock may
// be set meanwhile.
const longestWait = time.Minute

// follow has the desk told of a storage from now on, and shows it what there is now.
func (d *desk) follow(s source) {
	w, snapshot := d.cache.WatchNow(s.storage, s.scope)
	d.sources, d.watchers = append(d.sources, s), append(d.watchers, w)
	d.cases = append(d.cases, receive(w.Ready()))
	if s.there != nil {
		snapshot.Ascend("", "", "", s.there)
	}
}

// leave ends what follow began, for the storages for which gone is true. What run was given
// it keeps, even of these storages.
func (d *desk) leave(gone func(storage string) bool) {
	for i := len(d.sources) - 1; i >= d.given; i-- {
		if gone(d.sources[i].storage) {
			d.end(i)
		}
	}
}

// end ends the watch of a source.
func (d *desk) end(i int) {
	d.watchers[i].Stop()
	last := len(d.sources) - 1
	d.sources[i], d.watchers[i], d.cases[deskSources+i] = d.sources[last], d.watchers[last], d.cases[deskSources+last]
	d.sources, d.watchers, d.cases = d.sources[:last], d.watchers[:last], d.cases[:deskSources+last]
}

// take hands on what has changed of a source, and says whether the run can go on.
func (d *desk) take(ctx context.Context, i int) bool {
	batch, _, err := d.watchers[i].Take(ctx, d.batch)
	s := d.sources[i]
	switch {
	case err == nil:
		d.batch = batch
		s.changed(batch)
	case s.lost == nil:
		return false
	default:
		d.end(i)
		s.lost()
	}
	return true
}

// run works until ctx ends, or a watch ended because changes came too fast: then
// everything is to be looked at anew, by another run.
func (d *desk) run(ctx context.Context, sources ...source) {
	timer := time.NewTimer(longestWait)
	defer timer.Stop()
	d.cases = []reflect.SelectCase{deskEnds: receive(ctx.Done()), deskDue: receive(timer.C), deskMoved: {}}
	defer func() {
		d.given = 0
		d.leave(func(string) bool { return true })
		for _, a := range d.agendas {
			a.clear()
		}
	}()
	for d.given = 0; d.given < len(sources); d.given++ {
		d.follow(sources[d.given])
	}
	for ctx.Err() == nil {
		d.cases[deskMoved] = receive(d.moves.next())
		a, wait := d.next()
		cases := d.cases
		if a != nil { // it is only looked whether something has changed
			cases = append(cases[:len(cases):len(cases)], reflect.SelectCase{Dir: reflect.SelectDefault})
		} else {
			timer.Reset(wait)
		}
		if i, _, _ := reflect.Select(cases); i >= deskSources && i < len(d.cases) {
			if !d.take(ctx, i-deskSources) {
				return
			}
		}
		if a == nil || ctx.Err() != nil {
			continue
		}
		if key, ok := a.take(); ok {
			a.queue.Work(func() bool { return d.look(ctx, a, key) })
		}
	}
}

// next is the agenda of which something is due, or nil, and how long to wait for that.
func (d *desk) next() (*agenda, time.Duration) {
	now, wait := d.clock(), longestWait
	var first *agenda
	for _, a := range d.agendas {
		a.ripen(now)
		if first == nil && len(a.line) > 0 {
			first = a
		}
		if len(a.heap) > 0 {
			wait = min(wait, a.heap[0].at.Sub(now))
		}
	}
	return first, wait
}
