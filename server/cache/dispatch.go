package cache

// wake signals the watchers that have new events in their queues, except those with hooks, which wait for a round. It
// returns whether a round must be started.
func (ws *watchers) wake() (start bool) {
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
	for i, w := range ws.hit {
		w.woken = false
		ws.hit[i] = nil
		w.Wake()
	}
	ws.hit = ws.hit[:0]
	return ws.rounds.due()
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
	ws.rounds.bytes += it.Size()
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
		if d, ok := w.selects(e); ok {
			if !w.push(d) {
				w.seenUpTo = d.Revision() - 1
				s.watchers.full = append(s.watchers.full, w)
				continue
			}
			s.watchers.note(w)
		}
	}
}

// slowWatcher is a synced watcher whose queue holds events that the event log no longer has.
type slowWatcher struct {
	w      *Watcher
	oldest int64 // revision of its first event
	held   int
	alone  *Event // a queued event larger than the queue's limit; other watchers may hold it too
}

// slow lists the slow watchers of a stream, and ends those that cannot catch up any more.
func (s *stream) slow() (slow []*slowWatcher) {
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
		if e := w.taken; e != nil && e.Item.Revision <= floor {
			slow = append(slow, &slowWatcher{w, e.Item.Revision, 2 * e.largest(), e}) // with its frame
		}
		if n := len(w.queue); n > 0 && w.queue[0].Revision() <= floor {
			l := &slowWatcher{w: w, oldest: w.queue[0].Revision(), held: w.held}
			if l.held > maxQueueBytes {
				l.alone = w.queue[0].Event
			}
			slow = append(slow, l)
		}
		w.mu.Unlock()
	}
	return slow
}
