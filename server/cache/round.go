package cache

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Between two rounds, the watchers of a resource rest for so long for each watcher of the last round, up to restMost. An event
// that comes after a rest is sent at once. What comes during a rest is sent together: a write to a connection costs ten times
// as much as an event in it. The rest ends early once restBytes of objects have come.
const (
	restEach  = 400 * time.Microsecond
	restMost  = 40 * time.Millisecond
	restBytes = 32 << 10
)

// roundStep is how many watchers a goroutine notifies before it yields.
const roundStep = 128

// rounds notifies watchers with hooks that Take has something new. That may take a while, and the writer waits for Apply, so
// goroutines of their own do it, one round at a time. Its fields are guarded by the stream's mu.
type rounds struct {
	waiting []*Watcher    // for the next round
	running bool          // a goroutine of rounds runs
	bytes   int           // of the objects that have come since the last round
	rested  time.Time     // when the rest after the last round is over
	hurry   chan struct{} // ends the rest
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

// due returns whether a goroutine must be started that runs rounds. If one rests that should not, it ends the rest.
func (r *rounds) due() (start bool) {
	if len(r.waiting) == 0 {
		return false
	}
	if r.running {
		if r.bytes >= restBytes {
			select {
			case r.hurry <- struct{}{}:
			default:
			}
		}
		return false
	}
	r.running = true
	return true
}

// runRounds runs rounds until no watcher waits.
func (s *stream) runRounds() {
	var list []*Watcher
	for {
		s.rest()
		if list = s.beginRound(list); len(list) == 0 {
			return
		}
		notifyAll(list)
		s.mu.Lock()
		s.watchers.rounds.rested = time.Now().Add(min(time.Duration(len(list))*restEach, restMost))
		s.mu.Unlock()
	}
}

// rest waits until the rest after the last round is over.
func (s *stream) rest() {
	r := &s.watchers.rounds
	s.mu.Lock()
	full, idle, left := r.bytes >= restBytes, len(r.waiting) == 0, time.Until(r.rested)
	s.mu.Unlock()
	if full || idle || left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.hurry:
	case <-s.hub.closing:
	}
}

// beginRound takes the watchers that wait. If there are none, rounds end. It reuses the memory of list.
func (s *stream) beginRound(list []*Watcher) []*Watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.watchers.rounds
	clear(list)
	list, r.waiting = r.waiting, list[:0]
	for _, w := range list {
		w.woken = false
	}
	r.bytes, r.running = 0, len(list) > 0
	select {
	case <-r.hurry: // it came too late
	default:
	}
	return list
}

// notifyAll notifies watchers, those of a group together. It uses half of the processors and leaves the others to requests,
// and to clients on the same machine.
func notifyAll(all []*Watcher) {
	slices.SortFunc(all, func(a, b *Watcher) int { return cmp.Compare(a.scope.order(), b.scope.order()) })
	var next atomic.Int64
	some := func() {
		for {
			end := int(next.Add(roundStep))
			step := all[min(end-roundStep, len(all)):min(end, len(all))]
			for len(step) > 0 {
				step = step[notifyTogether(step):]
			}
			if end >= len(all) {
				return
			}
			runtime.Gosched()
		}
	}
	var helpers sync.WaitGroup
	for range min(max(1, runtime.GOMAXPROCS(0)/2), (len(all)+roundStep-1)/roundStep) - 1 {
		helpers.Go(some)
	}
	some()
	helpers.Wait()
}

// notifyTogether notifies the first watcher and those of the same group that follow it. It returns their number.
func notifyTogether(watchers []*Watcher) (n int) {
	g := watchers[0].scope.Group
	if g != nil {
		g.AddWriter()
		defer g.RemoveWriter()
	}
	for n < len(watchers) && (n == 0 || g != nil && watchers[n].scope.Group == g) {
		(*watchers[n].hooks.Load()).Notify()
		n++
	}
	return n
}
