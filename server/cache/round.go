package cache

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// A pause between two rounds of a resource batches events: a write to a connection costs ten times as much as an event in it.
// Its length is proportional to the watchers of the last round, up to maxPause; it ends early after pauseBytes of objects. An
// event after the pause is sent without delay.
const (
	pausePerWatcher = 400 * time.Microsecond
	maxPause        = 10 * time.Millisecond
	pauseBytes      = 32 << 10
)

// roundStep is the number of watchers that a goroutine notifies before it yields.
const roundStep = 128

// rounds notifies watchers with hooks that Take has something new. That may take a while, and the writer waits for Apply, so
// goroutines of their own do it, one round at a time. Its fields are guarded by the stream's mu.
type rounds struct {
	waiting     []*Watcher    // for the next round
	running     bool          // a goroutine of rounds runs
	bytes       int           // of the objects since the last round
	pausedUntil time.Time     // when the pause after the last round ends
	skipPause   chan struct{} // ends the pause
	now         bool          // watchers are being notified
	ended       chan struct{} // closed at the end of the round in progress; nil without a waiter
	next        chan struct{} // the same for the next round, which is not preceded by a pause
}

// due returns whether a goroutine must be started that runs rounds. If one pauses that should not, it ends the pause.
func (r *rounds) due() (start bool) {
	if len(r.waiting) == 0 {
		return false
	}
	if r.running {
		if r.bytes >= pauseBytes {
			r.endPause()
		}
		return false
	}
	r.running = true
	return true
}

func (r *rounds) endPause() {
	select {
	case r.skipPause <- struct{}{}:
	default:
	}
}

// notifySoon begins the next round without a pause, and returns a channel that is closed when all watchers that wait now have been
// notified. Nil: none waits.
func (s *stream) notifySoon() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.watchers.rounds
	switch {
	case len(r.waiting) > 0:
		if r.next == nil {
			r.next = make(chan struct{})
		}
		r.endPause()
		return r.next
	case r.now && r.ended == nil:
		r.ended = make(chan struct{})
	}
	return r.ended
}

// runRounds runs rounds until no watcher waits.
func (s *stream) runRounds() {
	var list []*Watcher
	for {
		s.pause()
		var awaited bool
		if list, awaited = s.beginRound(list); len(list) == 0 {
			return
		}
		s.notifyAll(list, awaited)
		s.endRound(len(list))
	}
}

// pause waits until the pause after the last round ends.
func (s *stream) pause() {
	r := &s.watchers.rounds
	s.mu.Lock()
	full, idle, left := r.bytes >= pauseBytes || r.next != nil, len(r.waiting) == 0, time.Until(r.pausedUntil)
	s.mu.Unlock()
	if full || idle || left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.skipPause:
	case <-s.hub.closing:
	}
}

// beginRound takes the watchers that wait. If there are none, rounds end. It reuses the memory of list. awaited means that the
// feed waits for the end of the round.
func (s *stream) beginRound(list []*Watcher) (_ []*Watcher, awaited bool) {
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
	case <-r.skipPause: // sent too late
	default:
	}
	r.now, r.ended, r.next = r.running, r.next, nil
	return list, r.ended != nil
}

// endRound ends a round of n watchers.
func (s *stream) endRound(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.watchers.rounds
	r.pausedUntil = time.Now().Add(min(time.Duration(n)*pausePerWatcher, maxPause))
	if r.now = false; r.ended != nil {
		close(r.ended)
		r.ended = nil
	}
}

// notifyAll notifies watchers, those of a group together. It uses half of the processors and leaves the others to requests,
// and to clients on the same machine. Unless the round is awaited, it lets others continue after each step. It does not wait
// for goroutines that get a processor only when all watchers have been notified.
func (s *stream) notifyAll(all []*Watcher, awaited bool) {
	slices.SortFunc(all, func(a, b *Watcher) int { return cmp.Compare(a.scope.order(), b.scope.order()) })
	var next, left atomic.Int64
	left.Store(int64(len(all)))
	done := make(chan struct{})
	some := func() {
		for {
			end := int(next.Add(roundStep))
			step := all[min(end-roundStep, len(all)):min(end, len(all))]
			n := int64(len(step))
			for len(step) > 0 {
				step = step[notifyTogether(step):]
			}
			if n > 0 && left.Add(-n) == 0 {
				close(done)
			}
			if end >= len(all) {
				return
			}
			if !awaited {
				runtime.Gosched()
			}
		}
	}
	for range min(max(1, runtime.GOMAXPROCS(0)/2), (len(all)+roundStep-1)/roundStep) - 1 {
		s.hub.start(some)
	}
	some()
	<-done
}

// notifyTogether notifies the first watcher and those of the same group that follow it. It returns their number.
func notifyTogether(list []*Watcher) (n int) {
	g := list[0].scope.Group
	if g != nil {
		g.AddWriter()
		defer g.RemoveWriter()
	}
	for n < len(list) && (n == 0 || g != nil && list[n].scope.Group == g) {
		(*list[n].hooks.Load()).Notify()
		n++
	}
	return n
}
