package cache

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"
)

// wake signals the watchers that have new events in their queues. Those with hooks it leaves to the fanOut that it returns,
// or nil if there are none.
func (ws *watchers) wake() *fanOut {
	for i, w := range ws.full {
		ws.remove(w)
		ws.behind[w] = struct{}{}
		ws.full[i] = nil
	}
	ws.full = ws.full[:0]
	for _, w := range ws.hit {
		if w.scope.Group != nil && w.signal.CompareAndSwap(idle, called) {
			w.scope.Group.AddWriter()
		}
	}
	var f *fanOut
	for i, w := range ws.hit {
		w.woken = false
		ws.hit[i] = nil
		if w.hooks.Load() == nil {
			w.Wake()
			continue
		}
		if f == nil {
			f = &fanOut{watchers: make([]*Watcher, 0, len(ws.hit)-i), step: fanOutStep}
		}
		if w.scope.Group != nil {
			f.step = groupStep
		}
		f.watchers = append(f.watchers, w)
	}
	ws.hit = ws.hit[:0]
	return f
}

// bucketFor returns the bucket of a scope.
func (s *stream) bucketFor(sc *Scope) bucketKey {
	name, namespace := sc.Name, sc.Namespace
	if n, ok := sc.Filter.pinned(FieldName); ok && name == "" {
		name = n
	}
	if n, ok := sc.Filter.pinned(FieldNamespace); ok && namespace == "" {
		namespace = n
	}
	if name != "" {
		return bucketKey{bucketName, namespace, name}
	}
	if sc.Filter != nil {
		for _, t := range sc.Filter.Fields {
			if key := indexKey(*s.keys.Load(), t.Index); key != "" && !t.Not {
				return bucketKey{bucketField, key, t.Value}
			}
		}
	}
	if namespace != "" {
		return bucketKey{bucketNamespace, namespace, ""}
	}
	return bucketKey{}
}

// dispatch queues an event for the watchers that see it.
func (s *stream) dispatch(e *Event) {
	ws := &s.watchers
	if len(ws.buckets) == 0 {
		return
	}
	it := e.Item
	s.offer(bucketKey{}, e)
	if ws.kinds[bucketNamespace] > 0 {
		s.offer(bucketKey{bucketNamespace, it.Namespace, ""}, e)
	}
	if ws.kinds[bucketName] > 0 {
		s.offer(bucketKey{bucketName, it.Namespace, it.Name}, e)
		if it.Namespace != "" {
			s.offer(bucketKey{bucketName, "", it.Name}, e)
		}
	}
	if ws.kinds[bucketField] > 0 {
		s.offerFields(e)
	}
}

// offerFields offers an event to the watchers of the fields' values, present and previous.
func (s *stream) offerFields(e *Event) {
	now := e.Item.fieldMeta().Fields
	var was []string
	if e.Prev != nil {
		was = e.Prev.fieldMeta().Fields
	}
	for i, key := range *s.keys.Load() {
		if key == "" || i >= len(now) {
			continue
		}
		s.offer(bucketKey{bucketField, key, now[i]}, e)
		if i < len(was) && was[i] != now[i] {
			s.offer(bucketKey{bucketField, key, was[i]}, e)
		}
	}
}

func (s *stream) offer(k bucketKey, e *Event) {
	for _, w := range s.watchers.buckets[k] {
		if !w.is(synced) {
			continue // it fell behind earlier in the batch
		}
		if d, ok := w.sees(e); ok {
			if !w.push(d) {
				w.seenUpTo = d.Revision() - 1
				s.watchers.full = append(s.watchers.full, w)
				continue
			}
			if !w.woken {
				w.woken = true
				s.watchers.hit = append(s.watchers.hit, w)
			}
		}
	}
}

// slowWatcher is a synced watcher whose queue holds events that the event log no longer has.
type slowWatcher struct {
	w      *Watcher
	oldest int64 // revision of its first event
	held   int
}

// slow lists the slow watchers of a stream, and ends those that cannot catch up any more.
func (s *stream) slow() (slow []slowWatcher) {
	s.mu.Lock()
	floor := s.recent.floor
	var all []*Watcher
	s.watchers.each(func(w *Watcher) { all = append(all, w) })
	lost := make(map[*Watcher]struct{})
	for w := range s.watchers.behind {
		if w.seenUpTo < floor {
			lost[w] = struct{}{}
		}
	}
	s.mu.Unlock()
	for _, w := range all {
		if _, ok := lost[w]; ok && (w.scope.Log == nil || w.isBegun()) {
			w.end(ErrSlow)
			continue
		}
		w.mu.Lock()
		if n := len(w.queue); n > 0 && w.queue[0].Revision() <= floor {
			slow = append(slow, slowWatcher{w, w.queue[0].Revision(), w.held})
		}
		w.mu.Unlock()
	}
	return slow
}

// How many watchers are notified before the goroutine yields. Those of a group send together, so there it is more.
const (
	fanOutStep = 16
	groupStep  = 128
)

// fanOut notifies watchers with hooks that Take has something new. That may take a while, and the writer waits for Apply, so
// goroutines of their own do it. They use half of the processors and leave the others to requests, and to clients on the
// same machine.
type fanOut struct {
	watchers []*Watcher // sorted by group, if any has one
	step     int
	next     atomic.Int64
}

func (f *fanOut) start(owner *hub) {
	owner.start(func() {
		if f.step == groupStep {
			slices.SortFunc(f.watchers, func(a, b *Watcher) int { return cmp.Compare(a.scope.order(), b.scope.order()) })
		}
		for range min(max(1, runtime.GOMAXPROCS(0)/2), (len(f.watchers)+f.step-1)/f.step) - 1 {
			owner.start(f.run)
		}
		f.run()
	})
}

func (f *fanOut) run() {
	for {
		end := int(f.next.Add(int64(f.step)))
		some := f.watchers[min(end-f.step, len(f.watchers)):min(end, len(f.watchers))]
		for len(some) > 0 {
			some = some[notifyTogether(some):]
		}
		if end >= len(f.watchers) {
			return
		}
		runtime.Gosched()
	}
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
