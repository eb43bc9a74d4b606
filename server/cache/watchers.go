package cache

import (
	"maps"
	"slices"
)

// watchers finds the watchers that may see an event. It is guarded by the stream's mu.
type watchers struct {
	buckets map[bucketKey][]*Watcher
	kinds   [bucketField + 1]int
	hit     []*Watcher            // to be signalled at the end of the batch
	full    []*Watcher            // fell behind in this batch, and leave their buckets at its end
	behind  map[*Watcher]struct{} // catch up from the event log, and are in no bucket
	rounds  rounds
}

func (ws *watchers) init() {
	ws.buckets, ws.behind = make(map[bucketKey][]*Watcher), make(map[*Watcher]struct{})
	ws.rounds.skipPause = make(chan struct{}, 1)
}

// catchUp makes a watcher that has received everything up to a revision read the event log.
func (ws *watchers) catchUp(w *Watcher, upTo int64) {
	w.seenUpTo = upTo
	ws.behind[w] = struct{}{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fallBehind()
}

func (ws *watchers) add(w *Watcher) {
	b := ws.buckets[w.place]
	w.index = len(b)
	ws.buckets[w.place] = append(b, w)
	ws.kinds[w.place.kind]++
}

func (ws *watchers) remove(w *Watcher) {
	delete(ws.behind, w)
	b := ws.buckets[w.place]
	if w.index >= len(b) || b[w.index] != w {
		return
	}
	last := len(b) - 1
	b[w.index] = b[last]
	b[w.index].index = w.index
	b[last] = nil
	ws.kinds[w.place.kind]--
	if last == 0 {
		delete(ws.buckets, w.place)
		return
	}
	ws.buckets[w.place] = b[:last]
}

func (ws *watchers) count() (n int) {
	n = len(ws.behind)
	for _, k := range ws.kinds {
		n += k
	}
	return n
}

// in returns the number of watchers in a bucket.
func (ws *watchers) in(k bucketKey) int { return len(ws.buckets[k]) }

// each calls fn with each watcher; fn may remove it.
func (ws *watchers) each(fn func(*Watcher)) {
	var all []*Watcher
	for _, b := range ws.buckets {
		all = append(all, b...)
	}
	for _, w := range slices.AppendSeq(all, maps.Keys(ws.behind)) {
		fn(w)
	}
}

// note has a watcher with a new event in its queue signalled.
func (ws *watchers) note(w *Watcher) {
	switch {
	case w.woken:
	case w.hooks.Load() != nil:
		ws.rounds.waiting = append(ws.rounds.waiting, w)
	default:
		ws.hit = append(ws.hit, w)
	}
	w.woken = true
}
